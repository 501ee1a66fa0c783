#include "launch/launcher.h"

#include "launch/file_descriptor.h"
#include "launch/job.h"
#include "launch/outcome.h"
#include "launch/process_tree.h"
#include "launch/signals.h"
#include "launch/supervisor.h"
#include "lockstep/error.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace lockstep::launch {
namespace {

// After the user's signal the supervisor ends the job within about 3 s; one that does not is stuck.
constexpr std::int64_t kSupervisorPatience_ns = 6'000'000'000;

// A descriptor of ours must not become somebody's standard output.
void open_standard_streams() {
  int fd;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

// Makes orphans below this process its children, for its lifetime.
class Subreaper {
 public:
  Subreaper() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

// Its own process group: the terminal's Ctrl-C and a kill of the launcher's group pass it by.
[[noreturn]] void run_supervisor(const Job& job, const SignalSet& signals,
                                 FileDescriptor launcher) {
  int code = 1;
  try {
    ::setpgid(0, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGTTOU, SIG_IGN);
    code = Supervisor(job, signals, std::move(launcher)).run();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "lockstep: %s\n", failure.what());
  }
  ::_exit(code);
}

// The launcher's side: hands signals to the supervisor and outlives it.
class Watch {
 public:
  Watch(const SignalSet& signals, pid_t supervisor, FileDescriptor pipe,
        std::vector<pid_t> not_ours)
      : reader_(signals),
        supervisor_(supervisor),
        pipe_(std::move(pipe)),
        not_ours_(std::move(not_ours)) {}

  int run() {
    int status = 0;
    while (::waitpid(supervisor_, &status, WNOHANG) != supervisor_) {
      pollfd watched{reader_.fd(), POLLIN, 0};
      ::poll(&watched, 1, asked_to_end_ns_ == 0 ? -1 : 200);
      while (const auto signal = reader_.next()) {
        pass_on(*signal);
      }
      if (asked_to_end_ns_ != 0 && monotonic_ns() - asked_to_end_ns_ > kSupervisorPatience_ns) {
        ::kill(supervisor_, SIGKILL);
      }
    }
    return conclude(status);
  }

 private:
  void pass_on(int signal) {
    if (signal == SIGCHLD) {
      return;
    }
    const std::uint8_t byte = static_cast<std::uint8_t>(signal);
    [[maybe_unused]] const ssize_t written = ::write(pipe_.get(), &byte, 1);
    if (ends_job(signal) && asked_to_end_ns_ == 0) {
      asked_to_end_ns_ = monotonic_ns();
    }
    if (signal == SIGTSTP) {
      ::raise(SIGSTOP);
    }
  }

  int conclude(int status) {
    if (WIFEXITED(status)) {
      return WEXITSTATUS(status);
    }
    end_descendants(std::chrono::seconds(3), not_ours_);
    std::fprintf(stderr, "lockstep: the supervisor was killed by %s; all ranks were ended\n",
                 signal_name(WTERMSIG(status)).c_str());
    return 1;
  }

  SignalReader reader_;
  pid_t supervisor_;
  FileDescriptor pipe_;
  std::vector<pid_t> not_ours_;
  std::int64_t asked_to_end_ns_ = 0;
};

}  // namespace

int launch(const LaunchOptions& options) {
  open_standard_streams();
  const Job job = make_job(options);
  const Subreaper subreaper;
  const SignalSet signals;
  const std::vector<pid_t> not_ours =
      descendants_of(::getpid());  // a shell that exec'ed us had some
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw SystemError(std::string("pipe: ") + std::strerror(errno));
  }
  FileDescriptor supervisors_end(ends[0]);
  FileDescriptor own_end(ends[1]);
  const pid_t supervisor = ::fork();
  if (supervisor < 0) {
    throw SystemError(std::string("fork: ") + std::strerror(errno));
  }
  if (supervisor == 0) {
    own_end.reset();
    run_supervisor(job, signals, std::move(supervisors_end));
  }
  supervisors_end.reset();
  return Watch(signals, supervisor, std::move(own_end), not_ours).run();
}

}  // namespace lockstep::launch
