// `lockstep bench train` on a model that takes no time.
#include "launch/started_program.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

std::vector<std::string> bench_train(std::vector<std::string> words) {
  words.insert(words.begin(), {LOCKSTEP_PROGRAM, "bench", "train", "--model", "gpt2-tiny", "--seq",
                               "16", "--pairs", "1", "--steps", "3"});
  return words;
}

TEST(BenchTrain, both_stages_train_the_same_and_are_compared) {
  for (const std::string precision : {"f32", "bf16"}) {
    StartedProgram program(bench_train({"--precision", precision, "--json"}));
    ASSERT_EQ(program.wait(std::chrono::seconds(100)), 0) << program.error();
    const auto answer = nlohmann::json::parse(program.output());
    ASSERT_EQ(answer.at("launches").size(), 2u);
    const auto& apart = answer.at("launches")[0];
    const auto& ddp = answer.at("launches")[1];
    EXPECT_EQ(apart.at("mode"), "apart");
    EXPECT_EQ(ddp.at("mode"), "ddp");
    EXPECT_EQ(apart.at("losses")[0], ddp.at("losses")[0]);
    EXPECT_NE(apart.at("losses")[2], ddp.at("losses")[2]);
    EXPECT_NE(apart.at("weights_sha256"), ddp.at("weights_sha256"));
    EXPECT_GT(ddp.at("exposed_comm_ms").get<double>(), 0);
    for (const auto& launch : answer.at("launches")) {
      EXPECT_EQ(launch.at("resident_bytes").size(), 2u);
      EXPECT_GT(launch.at("resident_bytes")[1].get<double>(), 1e6);
    }
    ASSERT_EQ(answer.at("comparisons").size(), 1u);
    EXPECT_GT(answer.at("comparisons")[0].at("ratio").at("median").get<double>(), 0);
    EXPECT_TRUE(program.nothing_left());
  }
}

// What they compute is compared by the bench itself, which fails where it differs.
TEST(BenchTrain, stages_and_one_process_with_all_threads_train_the_same) {
  StartedProgram program(
      bench_train({"--stages", "apart,threads,ddp,zero1,zero2,zero3", "--json"}));
  ASSERT_EQ(program.wait(std::chrono::seconds(100)), 0) << program.error();
  const auto answer = nlohmann::json::parse(program.output());
  const auto& launches = answer.at("launches");
  ASSERT_EQ(launches.size(), 6u);
  EXPECT_EQ(launches[1].at("mode"), "threads");
  EXPECT_EQ(launches[1].at("resident_bytes").size(), 1u);
  EXPECT_EQ(launches[1].at("losses"), launches[1].at("mean_losses"));
  for (std::size_t i = 3; i < 6; ++i) {
    EXPECT_EQ(launches[i].at("weights_sha256"), launches[2].at("weights_sha256"));
  }
  EXPECT_EQ(answer.at("comparisons").size(), 5u);
  EXPECT_TRUE(program.nothing_left());
}

TEST(BenchTrain, a_sweep_turns_the_dial) {
  const TemporaryFolder folder;
  const std::string plot = folder.file("sweep.svg");
  StartedProgram program(bench_train({"--sweep", "bucket", "--json", "--plot", plot}));
  ASSERT_EQ(program.wait(std::chrono::seconds(100)), 0) << program.error();
  const auto answer = nlohmann::json::parse(program.output());
  ASSERT_EQ(answer.at("launches").size(), 7u);
  EXPECT_TRUE(answer.at("launches")[0].at("bucket_mb").is_null());
  EXPECT_EQ(answer.at("launches")[1].at("bucket_mb"), 0);
  EXPECT_EQ(answer.at("launches")[5].at("bucket_mb"), 100);
  // One collective per parameter against one for nearly all of the model.
  EXPECT_GT(answer.at("launches")[1].at("collectives").get<int>(), 40);
  EXPECT_LE(answer.at("launches")[6].at("collectives").get<int>(), 2);
  EXPECT_NE(contents_of(plot).find("ddp bucket 100 MB"), std::string::npos);
}

TEST(BenchTrain, units_and_overlap_are_swept_on_the_stage_that_is_named) {
  StartedProgram units(bench_train({"--sweep", "unit", "--json"}));
  ASSERT_EQ(units.wait(std::chrono::seconds(100)), 0) << units.error();
  const auto answer = nlohmann::json::parse(units.output());
  ASSERT_EQ(answer.at("launches").size(), 5u);
  EXPECT_GT(answer.at("launches")[1].at("collectives"), answer.at("launches")[4].at("collectives"));
  StartedProgram overlap(
      bench_train({"--sweep", "overlap", "--stages", "zero2", "--precision", "bf16"}));
  ASSERT_EQ(overlap.wait(std::chrono::seconds(100)), 0) << overlap.error();
  const auto lines = lines_of(overlap.output());
  ASSERT_EQ(lines.size(), 5u) << overlap.output();
  EXPECT_TRUE(lines[3].starts_with("zero2 overlap on "));
  EXPECT_TRUE(lines[4].starts_with("zero2 overlap off "));
}

TEST(BenchTrain, pytorch_trains_a_model_of_the_same_size_in_every_way) {
  StartedProgram program(bench_train(
      {"--stages", "zero3,pytorch-none,pytorch-none-malloc,pytorch-ddp,pytorch-zero1,pytorch-fsdp2",
       "--python", LOCKSTEP_TORCH_PYTHON, "--json"}));
  ASSERT_EQ(program.wait(std::chrono::seconds(250)), 0) << program.error();
  const auto answer = nlohmann::json::parse(program.output());
  const auto& launches = answer.at("launches");
  ASSERT_EQ(launches.size(), 6u);
  EXPECT_EQ(launches[1].at("losses"), launches[2].at("losses"));
  EXPECT_GT(launches[1].at("losses")[0].get<double>(), 0);
  EXPECT_NE(launches[1].at("losses")[2], launches[3].at("losses")[2]);
  EXPECT_TRUE(launches[3].at("exposed_comm_ms").is_null());
  EXPECT_GT(launches[5].at("resident_bytes")[1].get<double>(), 1e7);
  EXPECT_EQ(answer.at("comparisons").back().at("mode"), "zero3");
  EXPECT_EQ(answer.at("comparisons").back().at("yardstick"), "pytorch-fsdp2");
}

TEST(BenchTrain, pytorch_trains_in_bf16_too) {
  StartedProgram program(bench_train({"--stages", "apart,pytorch-ddp,pytorch-fsdp2-malloc",
                                      "--precision", "bf16", "--python", LOCKSTEP_TORCH_PYTHON}));
  ASSERT_EQ(program.wait(std::chrono::seconds(250)), 0) << program.error();
  EXPECT_NE(program.output().find("\npytorch-fsdp2-malloc "), std::string::npos);
}

TEST(BenchTrain, an_unknown_model_is_refused_once_it_is_known_to_be) {
  StartedProgram program(bench_train({"--model", "gpt5"}));
  EXPECT_EQ(program.wait(std::chrono::seconds(60)), 2);
  EXPECT_NE(program.error().find("--model gpt5"), std::string::npos) << program.error();
}

}  // namespace
}  // namespace lockstep::test
