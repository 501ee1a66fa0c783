#include "launch/signals.h"

#include "lockstep/error.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace lockstep::launch {

SignalSet::SignalSet() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGCONT, SIGCHLD}) {
    ::sigaddset(&signals_, signal);
  }
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) {
    ::sigaddset(&signals_, SIGHUP);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &original_);
}

SignalSet::~SignalSet() { ::pthread_sigmask(SIG_SETMASK, &original_, nullptr); }

SignalReader::SignalReader(const SignalSet& set)
    : reader_(::signalfd(-1, &set.signals(), SFD_NONBLOCK | SFD_CLOEXEC)) {
  if (!reader_) {
    throw SystemError(std::string("signalfd: ") + std::strerror(errno));
  }
}

std::optional<int> SignalReader::next() {
  signalfd_siginfo info{};
  if (::read(reader_.get(), &info, sizeof(info)) != sizeof(info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

bool ends_job(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || signal == SIGHUP;
}

}  // namespace lockstep::launch
