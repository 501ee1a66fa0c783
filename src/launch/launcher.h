// Starts the ranks of a job on this host, watches them and ends them together.
#pragma once

#include "launch/host_list.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

enum class OutputMode : std::uint8_t {
  prefixed,          // every rank's lines behind "[r] "
  rank_zero_direct,  // rank 0 inherits standard output and error (a terminal stays one)
};

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> command;  // the program (a path, or a name looked up in PATH), arguments
  std::optional<int> threads;  // OMP_NUM_THREADS of the ranks; default: the user's, else a share
  std::optional<std::int64_t>
      deadline_s;      // LOCKSTEP_DEADLINE of the ranks; default: the user's, if any
  std::string flight;  // LOCKSTEP_FLIGHT of the ranks; empty: the user's, if any
  OutputMode output = OutputMode::prefixed;
  // Ranks that share no memory: an mpirun (find_mpirun()) starts them, and what it prints is passed
  // on.
  bool over_mpi = false;
  // An mpirun starts the ranks there; `ranks` is how many they are. Empty: all on this host.
  std::vector<HostRanks> hosts;
};

// Runs the job and returns the exit code for the caller's process: 0 when every rank exited 0, 1
// when one failed, 2 when those that failed all exited with 2, 128 + signal when the user ended it.
//
// Ranks get RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (free at the
// start), OMP_NUM_THREADS, LOCKSTEP_JOB, LOCKSTEP_CONTROL, /dev/null as standard input, a block of
// this process's cores, and a process group each. A single rank inherits output and error directly.
// SIGINT, SIGTERM, SIGHUP (unless ignored, as under nohup) and SIGQUIT are passed on; ranks that
// have not ended 3 s later are killed, at once on a second signal. When a rank fails the others get
// 1.5 s to report, then SIGTERM, 1 s later SIGKILL, and standard error ends with one line per
// failure, first cause first, those of groups followed by a line per rank. Whatever the ranks
// started ends with the job, also when this process or its supervisor is killed.
//
// Where mpirun starts the ranks it is the one process of the job for all of this: it is told who
// the ranks are, gets the signals, passes on what ranks print, and its exit status counts. Ranks on
// other hosts find this process's variables but for those of the host and login (passed_on()).
//
// Call it from a process with one thread, once at a time: it forks and changes the signal mask
// (restored at the end). Throws UsageError when the program can't be run, SystemError when the
// system refuses to start the job.
int launch(const LaunchOptions& options);

}  // namespace lockstep::launch
