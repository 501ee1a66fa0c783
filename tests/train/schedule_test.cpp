#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::train {
namespace {

TEST(Schedule, WarmsUpInALine) {
  const Schedule schedule{.peak = 1.0, .warmup = 4, .steps = 100};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 1.0);
}

TEST(Schedule, FallsAlongHalfACosineToATenth) {
  const Schedule schedule{.peak = 2.0, .warmup = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 2.0);
  EXPECT_NEAR(learning_rate(schedule, 60), 2.0 * 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 110), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 500), 0.2);
  for (std::int64_t step = 10; step < 110; ++step) {
    EXPECT_GT(learning_rate(schedule, step), learning_rate(schedule, step + 1));
  }
}

TEST(Schedule, StartsAtThePeakWithoutWarmUp) {
  EXPECT_DOUBLE_EQ(learning_rate({.peak = 1.0, .warmup = 0, .steps = 20}, 0), 1.0);
}

TEST(Schedule, WarmUpMayExceedTheSteps) {
  EXPECT_DOUBLE_EQ(learning_rate({.peak = 1.0, .warmup = 100, .steps = 20}, 19), 0.2);
}

TEST(Schedule, OneStepIsLegal) {
  EXPECT_DOUBLE_EQ(learning_rate({.peak = 1.0, .warmup = 0, .steps = 1}, 0), 1.0);
}

}  // namespace
}  // namespace lockstep::train
