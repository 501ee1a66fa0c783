// Every way to fail × every place × the first and the last rank: the job ends within five seconds,
// non-zero, names the first cause first, and leaves no process behind (and with the processes their
// descriptors and memfds, which nothing else holds).
#include "launch/started_program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <tuple>

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;
using lockstep::test::lines_of;
using lockstep::test::StartedProgram;

constexpr int kRanks = 3;

struct How {
  const char* name;
  const char* closing;  // what the launcher's first closing line says of the victim
};

using Case = std::tuple<const char*, How, int>;

class FaultMatrix : public ::testing::TestWithParam<Case> {};

std::ptrdiff_t open_descriptors() {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries("/proc/self/fd"), Entries());
}

TEST_P(FaultMatrix, H40_ends_all_and_names_the_victim_first) {
  const auto& [where, how, victim] = GetParam();
  const std::ptrdiff_t before = open_descriptors();
  {
    StartedProgram job({LOCKSTEP_PROGRAM, "launch", "-n", std::to_string(kRanks), "--",
                        LOCKSTEP_FAULT_RANK, where, how.name, std::to_string(victim)});
    ASSERT_TRUE(job.wait_for_text("failing", 60s)) << job.error();
    EXPECT_EQ(job.wait(5s), 1) << job.error();
    std::string first;
    for (const std::string& line : lines_of(job.error())) {
      if (first.empty() && line.starts_with("lockstep: rank")) {
        first = line;
      }
    }
    const std::string expected = "lockstep: rank " + std::to_string(victim) + ": " + how.closing;
    EXPECT_TRUE(first.starts_with(expected)) << job.error();
    EXPECT_TRUE(job.nothing_left(1s));
  }
  EXPECT_EQ(open_descriptors(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Train, FaultMatrix,
    ::testing::Combine(::testing::Values("rendezvous", "forward", "collective"),
                       ::testing::Values(How{"kill", "killed by signal 9 (SIGKILL)"},
                                         How{"exception", "the program's own error"},
                                         How{"exit", "exited with status 3"},
                                         How{"segv", "killed by signal 11 (SIGSEGV)"},
                                         How{"bad_alloc", "std::bad_alloc"}),
                       ::testing::Values(0, kRanks - 1)),
    [](const auto& tested) {
      return std::string(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param).name +
             "_rank" + std::to_string(std::get<2>(tested.param));
    });

}  // namespace
}  // namespace lockstep::train
