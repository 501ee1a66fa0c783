#include "train/run_advice.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

// Two ranks, half of whose steps is exposed, and little else to say.
Report advised_report() {
  Report report;
  report.options.ranks = 2;
  report.options.micro_batch = 2;
  report.options.sequence = 256;
  report.threads = 1;
  report.cores = 2;
  report.flops_per_step = 9e9;
  report.peak_flops = 1e11;
  report.history.losses = {1, 1, 1};
  report.history.step_ms = {100, 100, 100};
  RankRecord rank{.held = {1'000'000, 2'000'000, 3'000'000, 4'000'000}, .exposed_us = 50'000};
  rank.phases[1] = {.activations = 5'000'000, .resident = 15'000'000};
  report.ranks = {rank, rank};
  return report;
}

TEST(AdviceFor, ReadsTheReport) {
  const auto lines = advice_for(advised_report(), {.buckets = 3, .narrow_modules = {}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "50.0 of a step's 100.0 ms (50 %) is exposed communication: use --accumulate 2 (the "
            "batch doubles); a token costs up to 25 % less time");
}

TEST(AdviceFor, ComparesMemoryOfAllRanksAndEverythingElseItIsTold) {
  Report report = advised_report();
  report.flops_per_step = 2e9;
  report.options.micro_batch = 1;
  report.options.overlap = false;
  report.threads = 2;
  report.history.skipped_steps = 1;
  report.ranks[1].phases[1].resident = 40'000'000;
  const auto lines =
      advice_for(report, {.buckets = 3, .narrow_modules = {"norm"}, .f32_peak_flops = 2e11});
  ASSERT_EQ(lines.size(), 7u) << ::testing::PrintToString(lines);
  EXPECT_NE(lines[0].find("2 ranks x 2 threads share 2 cores"), std::string::npos);
  EXPECT_NE(lines[1].find("100 GFLOP/s in bf16 and 200 in f32"), std::string::npos);
  EXPECT_NE(lines[2].find("256 tokens in a micro-batch"), std::string::npos);
  EXPECT_NE(lines[3].find("--overlap on"), std::string::npos);
  EXPECT_NE(lines[4].find("first 'norm'"), std::string::npos);
  EXPECT_NE(lines[5].find("83 % more than ledger and activations"), std::string::npos);
  EXPECT_NE(lines[6].find("1 of 3 steps were skipped"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::train
