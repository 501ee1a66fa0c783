#include "bench/train/session.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::bench {
namespace {

Launch launch(const std::string& stage, std::int64_t round, double ms) {
  Launch result;
  result.stage = stage;
  result.round = round;
  result.step_ms = {ms, ms, ms};
  result.losses = stage == kPyTorch ? std::vector<double>{10.5, 9} : std::vector<double>{11, 10};
  result.weights_sha256 = stage == kPyTorch ? "" : "hash of " + stage;
  result.parameters = 7;
  return result;
}

std::vector<Launch> two_rounds() {
  return {launch("apart", 0, 100), launch("ddp", 0, 104), launch(kPyTorch, 0, 110),
          launch("apart", 1, 200), launch("ddp", 1, 202), launch(kPyTorch, 1, 200)};
}

// The text of the error that verify() throws; empty when it throws none.
std::string refusal(const std::vector<Launch>& launches) {
  try {
    verify(launches);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Session, ratios_pair_launches_of_one_round) {
  auto launches = two_rounds();
  launches.push_back(launch(kPyTorchTuned, 0, 80));
  launches.push_back(launch(kPyTorchTuned, 1, 100));
  const auto comparisons = compare(launches);
  ASSERT_EQ(comparisons.size(), 3u);
  EXPECT_EQ(comparisons[0].stage, "ddp");
  EXPECT_EQ(comparisons[0].yardstick, "apart");
  EXPECT_DOUBLE_EQ(comparisons[0].ratio.least, 1.01);
  EXPECT_DOUBLE_EQ(comparisons[0].ratio.most, 1.04);
  EXPECT_DOUBLE_EQ(comparisons[0].ratio.median, 1.025);
  EXPECT_EQ(comparisons[1].stage, "apart");
  EXPECT_DOUBLE_EQ(comparisons[1].ratio.most, 1.0);
  EXPECT_EQ(comparisons[2].yardstick, kPyTorchTuned);
  EXPECT_DOUBLE_EQ(comparisons[2].ratio.most, 2.0);
}

TEST(Session, without_a_yardstick_nothing_is_compared) {
  EXPECT_TRUE(compare({launch("ddp", 0, 1)}).empty());
  EXPECT_TRUE(compare({launch(kPyTorch, 0, 1)}).empty());
}

TEST(Session, equal_results_pass) { EXPECT_EQ(refusal(two_rounds()), ""); }

TEST(Session, a_launch_that_computed_something_else_is_refused) {
  auto launches = two_rounds();
  launches[3].losses.back() += 1e-12;
  EXPECT_NE(refusal(launches).find("losses or weights of apart in round 1"), std::string::npos);
  launches = two_rounds();
  launches[4].weights_sha256 = "another";
  EXPECT_NE(refusal(launches).find("losses or weights of ddp"), std::string::npos);
  launches = two_rounds();
  launches[1].losses.front() += 1e-12;
  EXPECT_NE(refusal(launches).find("first losses"), std::string::npos);
  launches = two_rounds();
  launches[2].parameters = 8;
  EXPECT_NE(refusal(launches).find("numbers of parameters"), std::string::npos);
}

TEST(Session, a_loss_that_is_not_finite_is_refused) {
  auto launches = two_rounds();
  launches[2].losses.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal(launches).find("not finite"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::bench
