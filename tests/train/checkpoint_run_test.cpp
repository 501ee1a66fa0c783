// Checkpoints as a user meets them: runs that stop, are killed or fail, and runs that go on.
#include "checkpoint/step_folders.h"
#include "train/runs.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep::train {
namespace {

using nlohmann::json;
using test::lines_of;
using test::StartedProgram;

json appended(json first, const json& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Both halves of a run are the run in one piece.
void expect_halves(const json& straight, const json& first, const json& second) {
  for (const char* const field : {"losses", "grad_norms"}) {
    EXPECT_EQ(appended(first[field], second[field]), straight[field]) << field;
  }
  EXPECT_EQ(second["weights_sha256"], straight["weights_sha256"]);
  EXPECT_EQ(second["validation"], straight["validation"]);
  EXPECT_EQ(first["first_step"], 0);
  EXPECT_EQ(second["first_step"], first["losses"].size());
}

// What a job says of its end, behind the launcher's line on how it began.
Words failure_lines(const StartedProgram& job) {
  Words lines = lines_of(job.error());
  std::erase_if(lines,
                [](const std::string& line) { return !line.starts_with("lockstep: rank "); });
  return lines;
}

int run_checkpoint_command(const Words& words, std::string* output, std::string* error) {
  StartedProgram program(joined({LOCKSTEP_PROGRAM, "checkpoint"}, words));
  const int status = program.wait();
  *output = program.output();
  *error = program.error();
  return status;
}

class Resumed : public ::testing::TestWithParam<const char*> {};

TEST_P(Resumed, TenAndTenStepsAreTwentyBitForBitAlsoOnOtherRanks) {
  Runs runs;
  const Words common{"--steps",        "20",          "--dropout", "0.1",
                     "--reproducible", "--precision", GetParam()};
  const Words two = joined(common, {"--ranks", "2"});
  const Words one = joined(common, {"--ranks", "1", "--stage", "single", "--accumulate", "2"});
  const json straight = runs.train(two);
  EXPECT_GT(straight["grad_norms"][0].get<double>(), 1.0) << "clipping does something";
  const Words saved{"--checkpoint", runs.file("saved")};
  const json first = runs.train(joined(two, joined(saved, {"--stop-at", "10"})));
  std::filesystem::copy(runs.file("saved"), runs.file("again"),
                        std::filesystem::copy_options::recursive);
  expect_halves(straight, first, runs.train(joined(one, joined(saved, {"--resume"}))));
  EXPECT_NE(runs.last_output().find("--ranks 1 (was 2)"), std::string::npos) << runs.last_output();
  expect_halves(straight, first,
                runs.train(joined(two, {"--checkpoint", runs.file("again"), "--resume"})));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Resumed, ::testing::Values("f32", "bf16"));

TEST(CheckpointRun, TheSameRanksGoOnBitForBitWithoutReproducible) {
  Runs runs;
  const Words two{"--ranks", "2", "--steps", "8", "--accumulate", "3"};
  const json straight = runs.train(two);
  const Words saved = joined(two, {"--checkpoint", runs.file("saved")});
  const json first = runs.train(joined(saved, {"--stop-at", "5"}));
  expect_halves(straight, first, runs.train(joined(saved, {"--resume"})));
}

TEST(CheckpointRun, K44_a_job_killed_at_any_time_goes_on_to_the_same_weights) {
  Runs runs;
  const Words two{"--ranks", "2", "--steps", "30"};
  const json straight = runs.train(two);
  const Words saved = joined(two, {"--checkpoint", runs.file("saved"), "--checkpoint-every", "1",
                                   "--keep", "2", "--resume"});
  for (const int milliseconds : {0, 35, 70}) {
    StartedProgram job(runs.command(saved), runs.environment());
    ASSERT_TRUE(job.wait_for_text("checkpoint  ", kPatience)) << job.error();
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    for (const pid_t process : job.marked_processes()) {
      ::kill(process, SIGKILL);
    }
    EXPECT_NE(job.wait(), 0);
    std::string output;
    std::string error;
    EXPECT_EQ(run_checkpoint_command({"verify", runs.file("saved")}, &output, &error), 0) << error;
  }
  EXPECT_EQ(runs.train(saved)["weights_sha256"], straight["weights_sha256"]);
  EXPECT_EQ(checkpoint::saved_steps(runs.file("saved")), (std::vector<std::int64_t>{29, 30}));
}

TEST(CheckpointRun, AFullDiskEndsTheRunWithOneLineAndThePreviousStepWhole) {
  Runs runs;
  const Words saved{"--ranks", "1", "--checkpoint", runs.file("saved")};
  runs.train(joined(saved, {"--steps", "1"}));
  // In blocks of 512 bytes: more than the gradients' memory, less than the optimizer's file.
  const Words limited{"/bin/sh", "-c", "ulimit -f 10000; exec \"$@\"", "sh"};
  const Words command = runs.command(joined(saved, {"--steps", "2", "--resume"}));
  StartedProgram job(joined(limited, command), runs.environment());
  EXPECT_EQ(job.wait(kPatience), 1) << job.output();
  EXPECT_EQ(failure_lines(job).size(), 1u) << job.error();
  EXPECT_NE(job.error().find("saved/.step-00000002/optimizer-0000"), std::string::npos)
      << job.error();
  EXPECT_NE(job.error().find("File too large"), std::string::npos) << job.error();
  std::string output;
  std::string error;
  EXPECT_EQ(run_checkpoint_command({"verify", runs.file("saved")}, &output, &error), 0) << error;
  EXPECT_EQ(lines_of(output).size(), 1u) << output;
  EXPECT_NE(output.find("step-00000001  step 1  adamw  2 files"), std::string::npos) << output;
  EXPECT_TRUE(checkpoint::unfinished_steps(runs.file("saved")).empty());
}

TEST(CheckpointRun, ADamagedStepIsNamedBeforeAnythingRuns) {
  Runs runs;
  const Words saved{"--ranks", "1", "--checkpoint", runs.file("saved")};
  const Words resumed = joined(saved, {"--steps", "2", "--resume"});
  runs.train(joined(saved, {"--steps", "1", "--resume"}));
  EXPECT_NE(runs.last_output().find("nothing is saved in"), std::string::npos);
  const std::string file = runs.file("saved/step-00000001/model-00001-of-00001.safetensors");
  std::string bytes = test::contents_of(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  StartedProgram job(runs.command(resumed), runs.environment());
  EXPECT_EQ(job.wait(kPatience), 1);
  EXPECT_EQ(failure_lines(job).size(), 1u) << job.error();
  EXPECT_NE(job.error().find(file + ": damaged: expected xxh3_128"), std::string::npos)
      << job.error();
  EXPECT_FALSE(std::filesystem::exists(runs.last_run())) << "no run folder is left";
  std::string output;
  std::string error;
  EXPECT_EQ(run_checkpoint_command({"verify", runs.file("saved")}, &output, &error), 1);
  EXPECT_NE(error.find(file + ": damaged"), std::string::npos) << error;
  EXPECT_EQ(run_checkpoint_command({"list", runs.file("saved")}, &output, &error), 0) << error;
}

TEST(CheckpointRun, AnotherRunIsRefusedBeforeItStarts) {
  Runs runs;
  const Words saved{"--ranks", "1", "--steps", "1", "--checkpoint", runs.file("saved")};
  runs.train(saved);
  for (const Words& words :
       {Words{}, Words{"--resume", "--seed", "2"}, Words{"--resume", "--micro-batch", "2"}}) {
    StartedProgram job(runs.command(joined(saved, words)), runs.environment());
    EXPECT_EQ(job.wait(kPatience), 2);
    EXPECT_EQ(lines_of(job.error()).size(), 1u) << job.error();
    EXPECT_NE(job.error().find(runs.file("saved")), std::string::npos) << job.error();
  }
}

}  // namespace
}  // namespace lockstep::train
