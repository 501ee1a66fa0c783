#include "base/environment.h"

#include "base/invariant.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <unistd.h>

namespace lockstep::environment {
namespace {

constexpr std::array kTable{
    Variable{"RANK", "launcher, torchrun", "this process's rank in the world"},
    Variable{"WORLD_SIZE", "launcher, torchrun", "ranks in the world"},
    Variable{"LOCAL_RANK", "launcher, torchrun", "this process's rank on its host"},
    Variable{"LOCAL_WORLD_SIZE", "launcher, torchrun", "ranks on this host"},
    Variable{"MASTER_ADDR", "launcher, torchrun", "host of rank 0"},
    Variable{"MASTER_PORT", "launcher, torchrun", "a port kept free for the job"},
    Variable{"LOCKSTEP_JOB", "launcher", "the job's nonce: names its rendezvous on this host"},
    Variable{"LOCKSTEP_CONTROL", "launcher", "socket on which ranks report failures"},
    Variable{"LOCKSTEP_DEADLINE", "launcher, user",
             "seconds without a sign of life before TimedOut"},
    Variable{"LOCKSTEP_FLIGHT", "launcher, user",
             "folder where ranks keep their last 1,000 operations (lockstep doctor --flight)"},
    Variable{"OMP_NUM_THREADS", "user, launcher", "compute threads of a rank"},
    Variable{"LOCKSTEP_CACHE", "user", "folder of caches (default $XDG_CACHE_HOME/lockstep)"},
    Variable{"XDG_CACHE_HOME", "user", "base of the default cache folder"},
    Variable{"HOME", "user", "base of the default cache folder when XDG_CACHE_HOME is unset"},
    Variable{"LOCKSTEP_TEXT", "user", "the file that --data text means (default: set-up's plays)"},
    Variable{"LOCKSTEP_GPT2", "user",
             "folder of encoder.json and vocab.bpe for --tokenizer gpt2 (default: set-up's)"},
    Variable{"PATH", "user", "where `lockstep launch` looks for a program without a slash"},
    Variable{"NO_COLOR", "user", "set: no colours on a terminal"},
    Variable{"TORCHELASTIC_RUN_ID", "torchrun", "names the job, with MASTER_PORT"},
    Variable{"TORCHELASTIC_RESTART_COUNT", "torchrun", "tells restarts of a job apart"},
    Variable{"LOCKSTEP_TRANSPORT", "user, launcher",
             "auto (ranks on one host share memory), shm, or mpi, for ranks that MPI started"},
    Variable{"LOCKSTEP_MPI", "user, launcher", "the libmpi.so to load (default: the starter's)"},
    Variable{"OMPI_COMM_WORLD_SIZE", "mpirun", "set: the world was started by Open MPI"},
    Variable{"PMI_SIZE", "mpirun", "set: the world was started by MPICH"},
    Variable{"PMI_RANK", "mpirun", "the same"},
    Variable{"SLURM_STEP_NUM_TASKS", "srun", "set: the world was started by Slurm"},
};

}  // namespace

std::span<const Variable> table() { return kTable; }

std::optional<std::string> text(std::string_view name) {
  const auto known = std::ranges::find(kTable, name, &Variable::name);
  LOCKSTEP_INVARIANT(known != kTable.end(), ==, true);
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return std::string(value);
}

std::optional<std::int64_t> integer(std::string_view name) {
  const auto value = text(name);
  if (!value) {
    return std::nullopt;
  }
  std::int64_t parsed = 0;
  const char* end = value->data() + value->size();
  const auto result = std::from_chars(value->data(), end, parsed);
  if (result.ec != std::errc{} || result.ptr != end) {
    throw UsageError("environment variable " + std::string(name) +
                     ": expected a whole number, got '" + *value + "'");
  }
  return parsed;
}

std::vector<std::string> inherited() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

std::vector<std::string> inherited_with(const std::vector<std::string>& own) {
  const auto name_of = [](const std::string& variable) {
    return std::string_view(variable).substr(0, variable.find('='));
  };
  std::vector<std::string> variables = inherited();
  std::erase_if(variables, [&](const std::string& variable) {
    return std::ranges::find(own, name_of(variable), name_of) != own.end();
  });
  variables.insert(variables.end(), own.begin(), own.end());
  return variables;
}

std::string cache_directory() {
  if (const auto own = text("LOCKSTEP_CACHE")) {
    return *own;
  }
  if (const auto base = text("XDG_CACHE_HOME")) {
    return *base + "/lockstep";
  }
  if (const auto home = text("HOME")) {
    return *home + "/.cache/lockstep";
  }
  throw UsageError(
      "no cache folder: none of LOCKSTEP_CACHE, XDG_CACHE_HOME and HOME is set; set one");
}

}  // namespace lockstep::environment
