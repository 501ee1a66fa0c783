#include "plan/advice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::plan {
namespace {

// Two ranks with nothing to improve.
RunSetting quiet_setting() {
  return {.ranks = 2,
          .threads = 1,
          .cores = 2,
          .buckets = 20,
          .micro_batch = 2,
          .sequence = 256,
          .learning_rate = 3e-4,
          .narrow_modules = {}};
}

RunResult quiet_result() {
  return {.steps = 20,
          .step_ms = 100,
          .exposed_ms = {3, 4},
          .mfu = 0.6,
          .peak_flops = 2e11,
          .gradient_bytes = 500'000'000,
          .resident_bytes = 4'040'000'000,
          .expected_bytes = 4'000'000'000};
}

// The one line that the changed run earns.
std::string only_advice(const RunSetting& setting, const RunResult& result) {
  const std::vector<std::string> lines = advise(setting, result);
  EXPECT_EQ(lines.size(), 1u) << ::testing::PrintToString(lines);
  return lines.empty() ? "" : lines.front();
}

TEST(Advice, AQuietRunGetsNone) { EXPECT_TRUE(advise(quiet_setting(), quiet_result()).empty()); }

TEST(Advice, NothingMeasuredIsNothingToSay) {
  EXPECT_TRUE(advise(quiet_setting(), {}).empty());
  EXPECT_TRUE(advise({}, {}).empty());
}

TEST(Advice, ExposedCommunicationNamesTheFirstLeverLeft) {
  RunSetting setting = quiet_setting();
  RunResult result = quiet_result();
  result.exposed_ms = {20, 24};
  const std::string seen = "20.0 of a step's 100.0 ms (20 %) is exposed communication: ";
  EXPECT_EQ(only_advice(setting, result),
            seen + "use --accumulate 2 (the batch doubles); a token costs up to 10 % less time");
  setting.buckets = 1;
  EXPECT_EQ(only_advice(setting, result),
            seen +
                "the one bucket can't overlap: use --bucket-mb 125; a step gets up to 20 % "
                "shorter");
  setting.bucket_mb = 0;
  setting.buckets = 148;
  EXPECT_EQ(only_advice(setting, result),
            seen + "148 collectives a step: use --bucket-mb 25; a step gets up to 20 % shorter");
  setting.overlap = false;
  EXPECT_EQ(only_advice(setting, result),
            seen + "leave --overlap on; a step gets up to 20 % shorter");
}

TEST(Advice, ExposedCommunicationCountsFromATenth) {
  RunResult result = quiet_result();
  result.exposed_ms = {9.9, 9.9};
  EXPECT_TRUE(advise(quiet_setting(), result).empty());
  result.exposed_ms = {10, 10};
  EXPECT_EQ(advise(quiet_setting(), result).size(), 1u);
  RunSetting alone = quiet_setting();
  alone.ranks = 1;
  result.exposed_ms = {10};
  EXPECT_TRUE(advise(alone, result).empty()) << "one rank has nobody to wait for";
}

TEST(Advice, ASlowRankIsNamed) {
  RunResult result = quiet_result();
  result.exposed_ms = {2, 42};
  EXPECT_EQ(only_advice(quiet_setting(), result),
            "rank 1 waits 40.0 of a step's 100.0 ms for rank 0: see what else runs on its cores, "
            "or use fewer --ranks; a step gets up to 40 % shorter");
}

TEST(Advice, SmallPagesMatterWhenMuchIsExchangedSlowly) {
  RunSetting setting = quiet_setting();
  RunResult result = quiet_result();
  setting.small_shared_pages = true;
  EXPECT_TRUE(advise(setting, result).empty());
  result.exposed_ms = {20, 20};
  const std::vector<std::string> lines = advise(setting, result);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1],
            "500 MB of gradients per rank lie in 4 KB pages: let root write advise to "
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  result.gradient_bytes = 63'000'000;
  EXPECT_EQ(advise(setting, result).size(), 1u);
}

TEST(Advice, SmallMicroBatchesLeaveTheProcessorIdle) {
  RunSetting setting = quiet_setting();
  RunResult result = quiet_result();
  setting.micro_batch = 1;
  setting.sequence = 64;
  EXPECT_TRUE(advise(setting, result).empty()) << "MFU is fine";
  result.mfu = 0.12;
  EXPECT_EQ(only_advice(setting, result),
            "MFU is 12 % with 64 tokens in a micro-batch, too few to fill the processor: use "
            "--micro-batch 8");
  setting.accumulate = 4;
  EXPECT_TRUE(only_advice(setting, result).ends_with("and lower --accumulate to keep the batch"));
  setting.micro_batch = 8;
  EXPECT_TRUE(advise(setting, result).empty()) << "512 tokens are enough";
}

TEST(Advice, Bf16SlowerThanF32IsSaidWithItsFigures) {
  RunResult result = quiet_result();
  result.peak_flops = 4e10;
  result.f32_peak_flops = 1e11;
  EXPECT_EQ(only_advice(quiet_setting(), result),
            "matrix products reach 40 GFLOP/s in bf16 and 100 in f32 on this processor: use "
            "--precision f32; they get 2.5 times as fast");
  result.f32_peak_flops = 3e10;
  EXPECT_TRUE(advise(quiet_setting(), result).empty());
}

TEST(Advice, NarrowNormsAndEmbeddingsAreNamed) {
  RunSetting setting = quiet_setting();
  setting.narrow_modules = {"h.0.norm", "wte"};
  EXPECT_EQ(only_advice(setting, quiet_result()),
            "2 norms or embeddings in bf16 add their gradients in bf16, first 'h.0.norm': keep "
            "them in fp32 (Precision::keep_f32)");
}

TEST(Advice, MoreThreadsThanCoresNamesTheRightNumber) {
  RunSetting setting = quiet_setting();
  setting.threads = 4;
  setting.cores = 4;
  EXPECT_EQ(only_advice(setting, quiet_result()),
            "2 ranks x 4 threads share 4 cores: use --threads 2");
  setting.ranks = 8;
  setting.threads = 1;
  EXPECT_EQ(only_advice(setting, quiet_result()),
            "8 ranks x 1 threads share 4 cores: use --ranks 4, and --accumulate for the same "
            "batch");
}

TEST(Advice, SkippedStepsAreCounted) {
  RunResult result = quiet_result();
  result.skipped_steps = 3;
  EXPECT_EQ(only_advice(quiet_setting(), result),
            "3 of 20 steps were skipped since a gradient was not finite: lower --lr (0.0003) or "
            "raise --warmup");
}

TEST(Advice, ARunWithoutStepsShowsNothing) {
  RunResult result = quiet_result();
  result.step_ms = 0;
  result.exposed_ms = {0.0, 0.04};
  EXPECT_TRUE(advise(quiet_setting(), result).empty());
}

TEST(Advice, MemoryBeyondTheLedgerIsSaid) {
  RunResult result = quiet_result();
  result.resident_bytes = 4'400'000'000;
  EXPECT_EQ(only_advice(quiet_setting(), result),
            "the ranks hold 4.40 GB, 10 % more than ledger and activations (4.00 GB): something "
            "outside the model keeps it; report it with report.json if the program added nothing");
  result.expected_bytes = 10'000'000;
  result.resident_bytes = 18'000'000;
  EXPECT_TRUE(advise(quiet_setting(), result).empty()) << "what LibTorch keeps for itself";
}

}  // namespace
}  // namespace lockstep::plan
