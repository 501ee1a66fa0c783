#include "support/mpi_job.h"

#include "launch/captured.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace lockstep::test {
namespace {

constexpr const char* kRankMark = "LOCKSTEP_TEST_MPI_RANK";

std::string running_test() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test->test_suite_name()) + "." + test->name();
}

// More ranks than cores; Open MPI must be told, and asks twice before it runs as root.
std::vector<std::string> settings_of(const std::string& library) {
  return library == "openmpi"
             ? std::vector<std::string>{"--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"}
             : std::vector<std::string>{};
}

}  // namespace

MpiJob::MpiJob(std::string library, int ranks, std::vector<std::string> environment)
    : library_(std::move(library)), ranks_(ranks), environment_(std::move(environment)) {}

bool MpiJob::is_rank() const { return std::getenv(kRankMark) != nullptr; }

MpiJob::Ended MpiJob::run() const {
  const std::filesystem::path folder = std::filesystem::path(LOCKSTEP_TEST_MPI) / library_ / "bin";
  if (!std::filesystem::exists(folder / "mpirun")) {
    throw std::runtime_error((folder / "mpirun").string() +
                             " is missing: run scripts/setup --tests");
  }
  launch::CapturedOptions options;
  options.command = {(folder / "mpirun").string(), "-n", std::to_string(ranks_)};
  for (const std::string& setting : settings_of(library_)) {
    options.command.push_back(setting);
  }
  options.command.push_back(std::filesystem::canonical("/proc/self/exe").string());
  options.command.push_back("--gtest_filter=" + running_test());
  options.environment = {
      std::string(kRankMark) + "=1", "PATH=" + folder.string() + ":" + std::getenv("PATH"),
      "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
      "OMPI_MCA_mpi_yield_when_idle=1",
      // Under sanitizers: MPI's libraries are not instrumented, and keep memory.
      "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=ignore_noninstrumented_modules=1"};
  options.environment.insert(options.environment.end(), environment_.begin(), environment_.end());
  options.patience = std::chrono::seconds(120);
  const launch::Captured captured = launch::run_captured(options);
  return {captured.exit_code, captured.output + captured.error};
}

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace lockstep::test
