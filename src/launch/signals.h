// Signals as events: blocked, and read from a descriptor.
#pragma once

#include "launch/file_descriptor.h"

#include <optional>
#include <signal.h>

namespace lockstep::launch {

// Blocks the signals a launcher answers to (SIGINT, SIGTERM, SIGQUIT, SIGHUP unless it is ignored,
// SIGTSTP, SIGCONT, SIGCHLD) for its lifetime. SIGINT and SIGQUIT also where a shell ignored them
// for a background job: a job must be endable by what the user sends to it.
class SignalSet {
 public:
  SignalSet();
  ~SignalSet();
  SignalSet(const SignalSet&) = delete;
  SignalSet& operator=(const SignalSet&) = delete;

  const sigset_t& signals() const { return signals_; }
  // The mask as it was before.
  const sigset_t& original() const { return original_; }

 private:
  sigset_t signals_{};
  sigset_t original_{};
};

// Reads blocked signals. Every process needs its own.
class SignalReader {
 public:
  explicit SignalReader(const SignalSet& set);
  int fd() const { return reader_.get(); }
  // The next signal that waits, or nullopt.
  std::optional<int> next();

 private:
  FileDescriptor reader_;
};

// Whether the signal asks a job to end.
bool ends_job(int signal);

}  // namespace lockstep::launch
