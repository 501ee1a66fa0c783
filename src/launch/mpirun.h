// A job that MPI's own launcher starts: which one that is, and its command line.
#pragma once

#include "launch/host_list.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::launch {

enum class MpiFamily : std::uint8_t { open_mpi, mpich };

// What "mpirun --version" printed. Throws UsageError for another one.
MpiFamily family_of(const std::string& version);

struct MpiJob {
  int ranks = 1;
  std::vector<HostRanks> hosts;  // in the order of ranks, with all of them; empty: this host
  std::vector<std::string> environment;  // "NAME=value" for the ranks
  std::vector<std::string> passed_on;    // names of the variables of mpirun's own that ranks get
  std::vector<std::string> command;      // the program and its arguments
};

// Of `variables` ("NAME=value") the names that a rank on another host is to have as this process
// has them: all but those of this host and login (HOME, TMPDIR, SSH_…), which that host sets, those
// of MPI's launchers, which mpirun passes on as it needs, and those that no program can name.
std::vector<std::string> passed_on(std::span<const std::string> variables);

// How `program` (an mpirun of the family) starts the job: without binding, since ranks share out
// the cores themselves, and with more ranks than cores where the user says so.
std::vector<std::string> mpirun_command(const std::string& program, MpiFamily family,
                                        const MpiJob& job);

struct Mpirun {
  std::string program;  // a path
  MpiFamily family = MpiFamily::open_mpi;
};

// The mpirun of the installation whose library LOCKSTEP_MPI names, else the one in PATH. Throws
// UsageError saying what to install where there is none, or it does not run.
Mpirun find_mpirun();

}  // namespace lockstep::launch
