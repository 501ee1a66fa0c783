#include "bench/train/verify.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::bench {
namespace {

// As a mode behaves that computes what it should.
Launch launch(const std::string& name, std::int64_t round, double ms) {
  Launch result;
  result.mode = mode_named(name);
  result.round = round;
  result.step_ms = {ms, ms, ms};
  result.parameters = 7;
  const bool alone = name == "apart" || name == kPyTorch || name == kPyTorchTuned;
  result.mean_losses = {11, alone ? 10.4 : 10.2, alone ? 10 : 9.7};
  result.losses = result.mean_losses;
  if (is_peer(result.mode)) {
    for (double& loss : result.mean_losses) {
      loss *= 30;
    }
    return result;
  }
  result.weights_sha256 = is_data_parallel(result.mode) ? "hash of all" : "hash of " + name;
  if (name == "threads") {
    for (double& loss : result.mean_losses) {
      loss *= 1 + 1e-6;
    }
    result.losses = result.mean_losses;
  }
  return result;
}

std::vector<Launch> round_of(std::int64_t round, const std::vector<std::string>& names) {
  std::vector<Launch> launches;
  for (const std::string& name : names) {
    launches.push_back(launch(name, round, 100));
  }
  return launches;
}

std::vector<Launch> two_rounds() {
  const std::vector<std::string> names{"apart",  "threads",     "ddp",           "zero3",
                                       kPyTorch, "pytorch-ddp", "pytorch-fsdp2", "deepspeed-zero3"};
  std::vector<Launch> launches = round_of(0, names);
  const std::vector<Launch> second = round_of(1, names);
  launches.insert(launches.end(), second.begin(), second.end());
  return launches;
}

// The text of the error that verify() throws; empty when it throws none.
std::string refusal(const std::vector<Launch>& launches, const std::string& precision = "f32") {
  try {
    verify(launches, precision);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

bool refused(const std::vector<Launch>& launches, const std::string& part,
             const std::string& precision = "f32") {
  return refusal(launches, precision).find(part) != std::string::npos;
}

TEST(Verify, equal_results_pass) {
  EXPECT_EQ(refusal(two_rounds()), "");
  EXPECT_EQ(refusal(two_rounds(), "bf16"), "");
}

TEST(Verify, ours_are_held_to_the_bit) {
  auto launches = two_rounds();
  launches[8].losses.back() += 1e-12;  // apart
  EXPECT_TRUE(refused(launches, "losses or weights of apart in round 1"));
  launches = two_rounds();
  launches[10].weights_sha256 = "another";
  EXPECT_TRUE(refused(launches, "losses or weights of ddp"));
}

TEST(Verify, all_data_parallel_modes_of_ours_end_with_the_same_bits) {
  auto launches = round_of(0, {"apart", "ddp", "zero3"});
  launches[2].weights_sha256 = "another";
  EXPECT_TRUE(refused(launches, "losses or weights of ddp in round 1 and of zero3"));
  launches = round_of(0, {"apart", "ddp"});
  launches[0].losses.front() += 1e-12;
  EXPECT_TRUE(refused(launches, "first losses"));
}

TEST(Verify, threads_train_nearly_what_the_stages_train) {
  auto launches = round_of(0, {"threads", "ddp"});
  EXPECT_EQ(refusal(launches), "");
  launches[0].mean_losses.back() *= 1.01;
  EXPECT_TRUE(refused(launches, "mean losses of step 3 of ddp in round 1 and of threads"));
  EXPECT_EQ(refusal(launches, "bf16"), "");
  launches[0].mean_losses.back() *= 1.05;
  EXPECT_TRUE(refused(launches, "mean losses of step 3", "bf16"));
  // The other ranks' batches are among its own, so no rank's loss is like its.
  EXPECT_EQ(refusal(round_of(0, {"apart", "threads"})), "");
}

TEST(Verify, peers_train_nearly_the_same_model) {
  auto launches = two_rounds();
  launches[6].mean_losses.front() *= 1.01;
  EXPECT_TRUE(refused(launches, "mean losses of step 1"));
  EXPECT_EQ(refusal(launches, "bf16"), "");
  launches = two_rounds();
  launches[15].mean_losses.back() *= 1.01;
  EXPECT_TRUE(refused(launches,
                      "mean losses of step 3 of pytorch-ddp in round 1 and of "
                      "deepspeed-zero3 in round 2"));
  launches[15].mean_losses.back() *= 1.5;
  EXPECT_EQ(refusal(launches, "bf16"), "");  // some peers keep no fp32 masters
}

TEST(Verify, another_model_or_a_loss_that_is_not_finite_is_refused) {
  auto launches = two_rounds();
  launches[4].parameters = 8;
  EXPECT_TRUE(refused(launches, "numbers of parameters"));
  launches = two_rounds();
  launches[4].losses.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused(launches, "not finite"));
  launches = two_rounds();
  launches[1].mean_losses.back() = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(refused(launches, "not finite"));
}

TEST(Compare, ratios_pair_launches_of_one_round) {
  const auto comparisons =
      compare({launch("apart", 0, 100), launch("ddp", 0, 104), launch(kPyTorch, 0, 110),
               launch("pytorch-ddp", 0, 208), launch("apart", 1, 200), launch("ddp", 1, 202),
               launch(kPyTorch, 1, 200), launch("pytorch-ddp", 1, 404)});
  ASSERT_EQ(comparisons.size(), 5u);
  const auto expect = [&](std::size_t i, const char* mode, const char* yardstick, Spread ratio) {
    EXPECT_EQ(comparisons[i].mode, mode);
    EXPECT_EQ(comparisons[i].yardstick, yardstick);
    EXPECT_DOUBLE_EQ(comparisons[i].ratio.median, ratio.median);
    EXPECT_DOUBLE_EQ(comparisons[i].ratio.least, ratio.least);
    EXPECT_DOUBLE_EQ(comparisons[i].ratio.most, ratio.most);
  };
  expect(0, "ddp", "apart", {1.025, 1.01, 1.04});
  expect(1, kPyTorch, "apart", {1.05, 1.0, 1.1});
  expect(2, "pytorch-ddp", "apart", {2.05, 2.02, 2.08});
  expect(3, "apart", kPyTorch, {(1.0 + 1 / 1.1) / 2, 1 / 1.1, 1.0});
  expect(4, "ddp", "pytorch-ddp", {0.5, 0.5, 0.5});
}

TEST(Compare, without_a_yardstick_nothing_is_compared) {
  EXPECT_TRUE(compare(round_of(0, {"ddp", "zero3"})).empty());
  EXPECT_TRUE(compare(round_of(0, {kPyTorch})).empty());
}

}  // namespace
}  // namespace lockstep::bench
