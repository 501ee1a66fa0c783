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
    EXPECT_EQ(apart.at("stage"), "apart");
    EXPECT_EQ(ddp.at("stage"), "ddp");
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

TEST(BenchTrain, pytorch_trains_a_model_of_the_same_size) {
  StartedProgram program(bench_train({"--stages", "apart", "--peers", "--json"}));
  ASSERT_EQ(program.wait(std::chrono::seconds(100)), 0) << program.error();
  const auto answer = nlohmann::json::parse(program.output());
  ASSERT_EQ(answer.at("launches").size(), 3u);
  EXPECT_EQ(answer.at("launches")[1].at("stage"), "pytorch-none");
  EXPECT_EQ(answer.at("launches")[2].at("stage"), "pytorch-none-malloc");
  EXPECT_EQ(answer.at("launches")[1].at("losses"), answer.at("launches")[2].at("losses"));
  EXPECT_GT(answer.at("launches")[1].at("losses")[0].get<double>(), 0);
  ASSERT_EQ(answer.at("comparisons").size(), 2u);
  EXPECT_EQ(answer.at("comparisons")[0].at("yardstick"), "pytorch-none");
}

TEST(BenchTrain, an_unknown_model_is_refused_once_it_is_known_to_be) {
  StartedProgram program(bench_train({"--model", "gpt5"}));
  EXPECT_EQ(program.wait(std::chrono::seconds(60)), 2);
  EXPECT_NE(program.error().find("--model gpt5"), std::string::npos) << program.error();
}

}  // namespace
}  // namespace lockstep::test
