// A job that MPI's own launcher starts: which one that is, and its command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::launch {

enum class MpiFamily : std::uint8_t { open_mpi, mpich };

// What "mpirun --version" printed. Throws UsageError for another one.
MpiFamily family_of(const std::string& version);

struct MpiJob {
  int ranks = 1;
  std::vector<std::string> hosts;        // in the order of ranks, evenly filled; empty: this host
  std::vector<std::string> environment;  // "NAME=value" for the ranks
  std::vector<std::string> command;      // the program and its arguments
};

// How `program` (an mpirun of the family) starts the job: without binding, since ranks share out
// the cores themselves, and with more ranks than cores where the user says so. Throws UsageError
// where the ranks do not divide by the hosts, or a host is named twice.
std::vector<std::string> mpirun_command(const std::string& program, MpiFamily family,
                                        const MpiJob& job);

struct Mpirun {
  std::string program;  // a path
  MpiFamily family = MpiFamily::open_mpi;
};

// The mpirun in PATH. Throws UsageError saying what to install where there is none, or it does not
// run.
Mpirun find_mpirun();

}  // namespace lockstep::launch
