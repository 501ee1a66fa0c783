#include "bench/acceptance/memory.h"

#include "bench/common/temporary_folder.h"
#include "cli/sibling.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace lockstep::bench {
namespace {

// Its standard output goes nowhere: what it has to say is in its report.
pid_t start_quietly(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw SystemError(words[0] + " can't be started: " + std::strerror(failure));
  }
  return pid;
}

void run_quietly(const std::vector<std::string>& words) {
  const pid_t pid = start_quietly(words);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error("lockstep train failed; see above");
  }
}

}  // namespace

MemoryRatios measure_memory(const MemoryQuestion& question) {
  const TemporaryFolder folder;
  const std::string report = folder.file("report.json");
  run_quietly({cli::find_sibling("lockstep"),
               "train",
               "--model",
               "gpt2-124m",
               "--data",
               "text",
               "--stage",
               question.stage,
               "--ranks",
               std::to_string(question.ranks),
               "--threads",
               "1",
               "--micro-batch",
               "1",
               "--seq",
               "128",
               "--steps",
               "3",
               "--eval-batches",
               "0",
               "--precision",
               question.precision,
               "--run",
               folder.file("run"),
               "--report",
               report});
  std::ifstream file(report);
  return memory_ratios(nlohmann::json::parse(file));
}

MemoryRatios memory_ratios(const nlohmann::json& report) {
  const nlohmann::json& memory = report.at("memory");
  const nlohmann::json& predicted = memory.at("predicted");
  const MemoryQuestion question{.precision = report.at("precision"),
                                .stage = report.at("stage"),
                                .ranks = report.at("ranks")};
  const double state = bytes_per_parameter(question) * report.at("parameters").get<double>();
  double ledger = 0;
  for (const char* category : {"parameters", "gradients", "optimizer", "transient_peak"}) {
    ledger += predicted.at(category).get<double>();
  }
  double resident = 0;
  double activations = 0;
  for (const nlohmann::json& rank : memory.at("per_rank")) {
    resident += rank.at("pss_peak").get<double>();
    activations += rank.at("activations_peak").get<double>();
  }
  return {.to_ledger = resident / (question.ranks * ledger + activations),
          .to_formula = (resident - activations) / (question.ranks * state)};
}

double bytes_per_parameter(const MemoryQuestion& question) {
  const bool narrow = question.precision == "bf16";
  const double weights = narrow ? 2 : 4;
  const double gradients = weights;
  const double optimizer = narrow ? 12 : 8;
  const auto share = [&](double bytes, std::string_view first_stage_that_divides) {
    return question.stage >= first_stage_that_divides ? bytes / question.ranks : bytes;
  };
  return share(weights, "zero3") + share(gradients, "zero2") + share(optimizer, "zero1");
}

}  // namespace lockstep::bench
