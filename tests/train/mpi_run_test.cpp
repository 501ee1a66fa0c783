// `lockstep train --transport mpi` under a real Open MPI and a real MPICH, as a user runs it.
#include "support/scoped_variable.h"
#include "train/runs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep::train {
namespace {

// Puts an MPI's programs first in PATH for as long as it lives.
test::ScopedVariable with_mpi(const std::string& library) {
  return {"PATH", std::string(LOCKSTEP_TEST_MPI) + "/" + library + "/bin:" + std::getenv("PATH")};
}

class MpiRun : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Libraries, MpiRun, ::testing::Values("openmpi", "mpich"));

TEST_P(MpiRun, every_stage_has_shared_memorys_bits_and_the_networks_traffic) {
  const test::ScopedVariable mpi = with_mpi(GetParam());
  Runs runs;
  const Words common{"--ranks", "2", "--steps", "3", "--dropout", "0.1", "--precision", "bf16"};
  const auto shared = runs.train(joined(common, {"--stage", "ddp"}));
  for (const char* stage : {"ddp", "zero1", "zero2"}) {
    const auto report = runs.train(joined(common, {"--stage", stage, "--transport", "mpi"}));
    EXPECT_EQ(report["weights_sha256"], shared["weights_sha256"]) << stage;
    EXPECT_EQ(report["losses"], shared["losses"]) << stage;
    EXPECT_EQ(report["grad_norms"], shared["grad_norms"]) << stage;
    const auto& traffic = report["traffic"];
    EXPECT_EQ(traffic["per_rank"][0]["sent"], traffic["predicted"]["sent"]) << stage;
    EXPECT_GT(traffic["predicted"]["sent"], 0) << stage;
  }
}

TEST(MpiRuns, what_needs_one_hosts_memory_is_refused_in_one_line) {
  Runs runs;
  for (const Words& words : {Words{"--stage", "zero3"}, Words{"--share-parameters"}}) {
    test::StartedProgram program(
        runs.command(joined({"--ranks", "2", "--transport", "mpi"}, words)), runs.environment());
    EXPECT_EQ(program.wait(kPatience), 2);
    EXPECT_EQ(test::lines_of(program.error()).size(), 1u) << program.error();
    EXPECT_NE(program.error().find("--transport mpi: " + words.front()), std::string::npos)
        << program.error();
  }
}

TEST(MpiRuns, without_an_mpirun_the_line_says_what_to_install) {
  Runs runs;
  test::StartedProgram program(runs.command({"--ranks", "2", "--transport", "mpi"}),
                               {"LOCKSTEP_CACHE=" + runs.file("cache"), "PATH=/nowhere"});
  EXPECT_EQ(program.wait(kPatience), 2);
  EXPECT_NE(program.error().find("install Open MPI"), std::string::npos) << program.error();
}

}  // namespace
}  // namespace lockstep::train
