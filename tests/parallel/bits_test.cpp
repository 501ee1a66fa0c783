// The promise of the same bits: whatever the number of ranks, the buckets and the overlap.
#include "lockstep/parallel.h"
#include "parallel/clipped_runs.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::Perceptron;
using test::run;
using test::train_everywhere;

using Values = std::vector<double>;

void expect_same_bits_for_any_number_of_ranks(const Precision& precision) {
  ParallelOptions options{.precision = precision, .reproducible = true, .seed = 3};
  options.stage = Stage::single;
  const Values one = train_everywhere({1, 8, options});
  options.stage = Stage::ddp;
  EXPECT_EQ(one, train_everywhere({2, 4, options}));
  EXPECT_EQ(one, train_everywhere({4, 2, options}));
  EXPECT_EQ(one, train_everywhere({8, 1, options}));
  EXPECT_LT(one.at(10), one.at(0));  // the last step's loss against the first's
}

TEST(Parallel, ReproducibleBitsForAnyNumberOfRanksF32) {
  expect_same_bits_for_any_number_of_ranks(Precision::f32());
}

TEST(Parallel, ReproducibleBitsForAnyNumberOfRanksBf16) {
  expect_same_bits_for_any_number_of_ranks(Precision::bf16_mixed(
      [](const std::string& name) { return name.find("norm") != std::string::npos; }));
}

TEST(Parallel, BucketsAndOverlapDoNotChangeBits) {
  const ParallelOptions base{.stage = Stage::ddp, .seed = 3};
  const Values expected = train_everywhere({3, 2, base});
  for (const double bucket_mb : {0.0, 0.005, 1.0}) {
    for (const bool overlap : {true, false}) {
      ParallelOptions options = base;
      options.bucket_mb = bucket_mb;
      options.overlap = overlap;
      EXPECT_EQ(expected, train_everywhere({3, 2, options})) << bucket_mb << " " << overlap;
    }
  }
}

TEST(Parallel, OverlapCompletesTheFirstBucketBeforeTheLastHook) {
  const auto overlapped_steps = [](bool overlap) {
    const auto all = run(2, [overlap](Group& group) {
      Perceptron model(200, 12);
      Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = 0.2, .overlap = overlap});
      AdamW optimizer = parallel.adamw();
      double count = 0;
      for (int step = 0; step < 20; ++step) {
        model(torch::ones({400, 200})).pow(2).mean().backward();
        optimizer.step();
        count += parallel.last_step().first_bucket_before_last_hook;
      }
      return Values{count};
    });
    return all[0].at(0);
  };
  EXPECT_GE(overlapped_steps(true), 10);
  EXPECT_EQ(overlapped_steps(false), 0);
}

}  // namespace
}  // namespace lockstep
