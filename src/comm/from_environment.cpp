#include "comm/from_environment.h"

#include "base/environment.h"
#include "comm/mpi_port.h"
#include "comm/network_meeting.h"
#include "lockstep/error.h"

#include <algorithm>
#include <optional>

namespace lockstep::comm {
namespace {

constexpr const char* kWayOut =
    ": start with lockstep launch, or with mpirun, or with torchrun on one host";

std::int64_t required(const char* variable, const char* given) {
  const auto value = environment::integer(variable);
  if (!value) {
    throw UsageError(std::string(given) + " is set but " + variable + " is not" + kWayOut);
  }
  return *value;
}

// How many ranks MPI's launcher started; 1 where it did not.
std::int64_t ranks_of_mpi() {
  std::int64_t ranks = 1;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    ranks = std::max(ranks, environment::integer(name).value_or(1));
  }
  return ranks;
}

World::Mpi mpi_of_environment() {
  const std::string transport = environment::text("LOCKSTEP_TRANSPORT").value_or("auto");
  if (transport != "auto" && transport != "shm" && transport != "mpi") {
    throw UsageError("LOCKSTEP_TRANSPORT: expected auto, shm or mpi, got '" + transport + "'");
  }
  const bool started = ranks_of_mpi() > 1;
  if (transport == "mpi" && !started && environment::integer("WORLD_SIZE").value_or(1) > 1) {
    throw UsageError(
        "LOCKSTEP_TRANSPORT is mpi, but no mpirun started this process; use mpirun, or "
        "lockstep train --transport mpi");
  }
  if (!started) {
    return World::Mpi::none;
  }
  if (transport == "mpi") {
    return World::Mpi::carries;
  }
  return transport == "shm" ? World::Mpi::introduces_one_host : World::Mpi::introduces;
}

void refuse_several_hosts(std::int64_t size) {
  const auto local = environment::integer("LOCAL_WORLD_SIZE");
  if (local && *local != size) {
    throw UsageError("LOCAL_WORLD_SIZE is " + std::to_string(*local) + " and WORLD_SIZE " +
                     std::to_string(size) + ": several hosts need MPI: start with mpirun");
  }
}

// What only the ranks of this job on this host know in common.
std::string job_of_environment() {
  if (const auto job = environment::text("LOCKSTEP_JOB")) {
    return *job;
  }
  const auto port = environment::integer("MASTER_PORT");
  if (!port) {
    throw UsageError(
        std::string("RANK and WORLD_SIZE are set, but neither LOCKSTEP_JOB nor MASTER_PORT") +
        kWayOut);
  }
  std::string job = "torchrun";
  for (const char* variable :
       {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    job += "|" + environment::text(variable).value_or("");
  }
  return job;
}

void take_deadline(GroupOptions& options) {
  const auto seconds = environment::integer("LOCKSTEP_DEADLINE");
  if (!seconds) {
    return;
  }
  if (*seconds < 1) {
    throw UsageError("LOCKSTEP_DEADLINE: expected at least 1 second, got " +
                     std::to_string(*seconds));
  }
  options.deadline = std::chrono::seconds(*seconds);
}

}  // namespace

int started_ranks() {
  const std::int64_t by_mpi = ranks_of_mpi();
  return static_cast<int>(by_mpi > 1 ? by_mpi : environment::integer("WORLD_SIZE").value_or(1));
}

World world_from_environment(GroupOptions options) {
  take_deadline(options);
  World world;
  world.options = std::move(options);
  world.mpi = mpi_of_environment();
  world.flight = environment::text("LOCKSTEP_FLIGHT").value_or("");
  const auto rank = environment::integer("RANK");
  if (world.mpi != World::Mpi::none || (!rank && !environment::integer("WORLD_SIZE"))) {
    return world;
  }
  const std::int64_t size = required("WORLD_SIZE", "RANK");
  const std::int64_t own = required("RANK", "WORLD_SIZE");
  constexpr std::int64_t kMostRanks = 1 << 16;
  if (size < 1 || size > kMostRanks) {
    throw UsageError("WORLD_SIZE: expected 1 to " + std::to_string(kMostRanks) + ", got " +
                     std::to_string(size));
  }
  if (own < 0 || own >= size) {
    throw UsageError("RANK: expected 0 to " + std::to_string(size - 1) + " (WORLD_SIZE is " +
                     std::to_string(size) + "), got " + std::to_string(own));
  }
  refuse_several_hosts(size);
  world.rank = static_cast<int>(own);
  world.size = static_cast<int>(size);
  world.job = size == 1 ? "" : job_of_environment();
  return world;
}

namespace {

std::shared_ptr<Communicator> form_mpi_world(const World& world) {
  const std::shared_ptr<Port> port = port_of_mpi();
  const Network network(port);
  const Acquaintance met =
      meet_over(*port, network.control_channel(), host_identity(), world.options.deadline);
  GroupOptions options = world.options;
  options.hosts = met.host_of;
  if (met.hosts() > 1 && world.mpi == World::Mpi::introduces_one_host) {
    throw UsageError("LOCKSTEP_TRANSPORT is shm, but mpirun started ranks on " +
                     std::to_string(met.hosts()) + " hosts; leave it out, or give mpi");
  }
  if (world.mpi == World::Mpi::carries || met.hosts() > 1) {
    return form_network_group(network, port->rank(), options);
  }
  Formation formation;
  formation.meeting = meeting_of_processes(met.job);
  formation.key = "world";
  formation.rank = port->rank();
  formation.size = port->size();
  formation.options = options;
  formation.port = port;
  return form_group(formation);
}

}  // namespace

std::shared_ptr<Communicator> form_world(const World& world) {
  if (world.mpi != World::Mpi::none) {
    return form_mpi_world(world);
  }
  Formation formation;
  formation.meeting = world.job.empty() ? meeting_of_one() : meeting_of_processes(world.job);
  formation.key = "world";
  formation.rank = world.rank;
  formation.size = world.size;
  formation.options = world.options;
  auto communicator = form_group(formation);
  if (!world.flight.empty()) {
    communicator->journal()->record_to(world.flight);
  }
  return communicator;
}

}  // namespace lockstep::comm
