// One rank as a process: how it is started.
#pragma once

#include "launch/file_descriptor.h"
#include "launch/job.h"

#include <sys/types.h>

#include <signal.h>

namespace lockstep::launch {

enum class Stream : std::uint8_t {
  inherited,  // the launcher's own
  piped,      // to the launcher, which relays it
};

struct StartedRank {
  pid_t pid = -1;
  FileDescriptor output;  // the launcher's ends of the pipes, non-blocking; none when inherited
  FileDescriptor error;
};

// Forks and executes rank `rank` in a process group of its own, pinned to its cores, to be killed
// by the kernel when the calling thread dies, with `mask` as its signal mask. Returns once the
// program has been executed; throws SystemError when it could not be.
StartedRank start_rank(const Job& job, int rank, Stream stream, const sigset_t& mask);

}  // namespace lockstep::launch
