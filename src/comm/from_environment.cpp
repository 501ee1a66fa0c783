#include "comm/from_environment.h"

#include "base/environment.h"
#include "lockstep/error.h"

#include <optional>

namespace lockstep::comm {
namespace {

constexpr const char* kWayOut = ": start with lockstep launch, or with torchrun on one host";

std::int64_t required(const char* variable, const char* given) {
  const auto value = environment::integer(variable);
  if (!value) {
    throw UsageError(std::string(given) + " is set but " + variable + " is not" + kWayOut);
  }
  return *value;
}

void refuse_mpi() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (environment::integer(variable).value_or(1) > 1) {
      throw UsageError(std::string(variable) +
                       " says that mpirun or srun started several ranks, but MPI is not built yet" +
                       kWayOut);
    }
  }
}

void refuse_several_hosts(std::int64_t size) {
  const auto local = environment::integer("LOCAL_WORLD_SIZE");
  if (local && *local != size) {
    throw UsageError(
        "LOCAL_WORLD_SIZE is " + std::to_string(*local) + " and WORLD_SIZE " +
        std::to_string(size) +
        ": several hosts need MPI, which is not built yet; start all ranks on one host");
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

World world_from_environment(GroupOptions options) {
  take_deadline(options);
  World world;
  world.options = std::move(options);
  world.flight = environment::text("LOCKSTEP_FLIGHT").value_or("");
  const auto rank = environment::integer("RANK");
  if (!rank && !environment::integer("WORLD_SIZE")) {
    refuse_mpi();
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

std::shared_ptr<Communicator> form_world(const World& world) {
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
