// The program of a rank, up to where training begins.
#include "launch/control_socket.h"
#include "launch/started_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <unistd.h>

namespace lockstep::cli {
namespace {

using lockstep::test::lines_of;
using lockstep::test::StartedProgram;

constexpr std::chrono::seconds kPatience(60);  // LibTorch's libraries load slowly when cold

TEST(LockstepTrain, bad_words_end_with_2_and_one_line) {
  StartedProgram alone({LOCKSTEP_TRAIN_PROGRAM});
  EXPECT_EQ(alone.wait(kPatience), 2);
  EXPECT_NE(alone.error().find("expected train, generate or export"), std::string::npos)
      << alone.error();
  StartedProgram option({LOCKSTEP_TRAIN_PROGRAM, "train", "--stpes", "3"});
  EXPECT_EQ(option.wait(kPatience), 2);
  EXPECT_EQ(lines_of(option.error()).size(), 1u);
  EXPECT_NE(option.error().find("--stpes"), std::string::npos) << option.error();
}

TEST(LockstepTrain, ranks_must_be_those_that_were_started) {
  StartedProgram program({LOCKSTEP_TRAIN_PROGRAM, "train", "--ranks", "2"},
                         {"RANK=0", "WORLD_SIZE=3"});
  EXPECT_EQ(program.wait(kPatience), 2);
  EXPECT_NE(program.error().find("--ranks 2: 3 were started (WORLD_SIZE"), std::string::npos)
      << program.error();
}

TEST(LockstepTrain, H40_under_a_launcher_the_error_goes_to_it_and_not_to_the_screen) {
  const std::string name = "lockstep-test-train-" + std::to_string(::getpid());
  launch::ControlSocket socket(name);
  StartedProgram program({LOCKSTEP_TRAIN_PROGRAM, "train", "--ranks", "2"},
                         {"RANK=1", "WORLD_SIZE=3", "LOCKSTEP_CONTROL=" + name});
  EXPECT_EQ(program.wait(kPatience), 2);
  EXPECT_EQ(program.error(), "");
  const auto report = socket.receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rank, 1);
  EXPECT_EQ(report->kind, launch::FailureKind::cause);
  EXPECT_TRUE(report->text.starts_with("--ranks 2")) << report->text;
}

}  // namespace
}  // namespace lockstep::cli
