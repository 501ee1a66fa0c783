// What is decided about a job before any of its processes exists.
#pragma once

#include "launch/launcher.h"
#include "launch/placement.h"

#include <string>
#include <vector>

namespace lockstep::launch {

struct Job {
  int ranks = 1;                     // processes to start: with mpirun, itself alone
  std::string program;               // path of the executable
  std::vector<std::string> command;  // argv of every rank
  std::string nonce;                 // names the job's rendezvous; 32 hexadecimal digits
  std::string control;               // name of the control socket
  int port = 0;                      // free on 127.0.0.1 when the job was made
  Placement placement;
  std::string threads;   // OMP_NUM_THREADS of every rank
  std::string deadline;  // LOCKSTEP_DEADLINE; empty: as inherited
  std::string flight;    // LOCKSTEP_FLIGHT, absolute; empty: as inherited
  OutputMode output = OutputMode::prefixed;
  std::string by_mpirun;  // "2 ranks by mpirun" where MPI's launcher starts them; else empty
  std::string transport;  // LOCKSTEP_TRANSPORT; empty: as inherited
};

// Throws UsageError when the program can't be run, SystemError.
Job make_job(const LaunchOptions& options);

// The environment of a rank, or of the mpirun that starts the ranks and tells them who they are:
// this process's with the job's variables in place of its own.
std::vector<std::string> environment_of(const Job& job, int rank);

// One line: ranks, cores, threads and where they come from, address.
std::string describe(const Job& job);

// The executable that `name` means: itself when it holds a slash, else looked up in PATH. Throws
// UsageError saying what is wrong with it.
std::string find_program(const std::string& name);

}  // namespace lockstep::launch
