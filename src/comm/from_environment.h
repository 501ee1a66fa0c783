// The world this process was started in, read from what its launcher left in the environment.
#pragma once

#include "comm/formation.h"

#include <memory>
#include <string>

namespace lockstep::comm {

struct World {
  int rank = 0;
  int size = 1;
  std::string job;  // nonce of the rendezvous; empty: alone
  GroupOptions options;
  // Where MPI started the ranks it says who they are; ranks on one host then share memory, but for
  // `carries`, and `introduces_one_host` takes no others.
  enum class Mpi : std::uint8_t { none, introduces, introduces_one_host, carries };
  Mpi mpi = Mpi::none;
  std::string flight = {};  // folder of the flight recorder's files; empty: none
};

// How many ranks the environment says were started: by MPI's launcher, else by WORLD_SIZE; 1:
// alone.
int started_ranks();

// Throws UsageError naming the variable that is missing, wrong, or of a launcher that is not
// supported yet. LOCKSTEP_DEADLINE overrides options.deadline, LOCKSTEP_FLIGHT says where to
// record.
World world_from_environment(GroupOptions options);

// Collective over the world.
std::shared_ptr<Communicator> form_world(const World& world);

}  // namespace lockstep::comm
