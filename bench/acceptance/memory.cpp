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

double measure_memory(const std::string& precision) {
  const TemporaryFolder folder;
  const std::string report = folder.file("report.json");
  run_quietly({cli::find_sibling("lockstep"),
               "train",
               "--model",
               "gpt2-124m",
               "--data",
               "text",
               "--ranks",
               "2",
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
               precision,
               "--run",
               folder.file("run"),
               "--report",
               report});
  std::ifstream file(report);
  return memory_ratio(nlohmann::json::parse(file));
}

double memory_ratio(const nlohmann::json& report) {
  const nlohmann::json& memory = report.at("memory");
  const nlohmann::json& predicted = memory.at("predicted");
  double ledger = 0;
  for (const char* category : {"parameters", "gradients", "optimizer", "transient_peak"}) {
    ledger += predicted.at(category).get<double>();
  }
  double resident = 0;
  double expected = 0;
  for (const nlohmann::json& rank : memory.at("per_rank")) {
    resident += rank.at("pss_peak").get<double>();
    expected += ledger + rank.at("activations_peak").get<double>();
  }
  return resident / expected;
}

}  // namespace lockstep::bench
