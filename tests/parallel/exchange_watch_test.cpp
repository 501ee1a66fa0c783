// What an observer of a step is told, by the watch alone and by a Parallel on real ranks.
#include "parallel/exchange_watch.h"

#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::parallel {
namespace {

using Clock = std::chrono::steady_clock;

// Keeps what it is told.
class Notes final : public StepObserver {
 public:
  struct Exchange {
    std::string name;
    std::int64_t bytes;
    TimeSpan time;
  };
  void exchanged(const ExchangeSpan& span) override {
    exchanges.push_back({std::string(span.name), span.bytes, span.time});
  }
  void exposed(TimeSpan time) override { waits.push_back(time); }

  std::vector<Exchange> exchanges;
  std::vector<TimeSpan> waits;
};

TEST(ExchangeWatch, TellsEachBucketOnceWhenItIsComplete) {
  Notes notes;
  ExchangeWatch watch;
  watch.observe(&notes);
  const auto before = Clock::now();
  watch.started("first", 8);
  watch.started("second", 16);
  watch.look([](std::size_t) { return false; });
  EXPECT_TRUE(notes.exchanges.empty());
  watch.look([](std::size_t n) { return n == 1; });
  watch.look([](std::size_t) { return true; });
  watch.look([](std::size_t) { return true; });
  ASSERT_EQ(notes.exchanges.size(), 2u);
  EXPECT_EQ(notes.exchanges[0].name, "second");
  EXPECT_EQ(notes.exchanges[1].name, "first");
  EXPECT_EQ(notes.exchanges[1].bytes, 8);
  EXPECT_LE(before, notes.exchanges[1].time.begin);
  EXPECT_LT(notes.exchanges[1].time.begin, notes.exchanges[1].time.end);
  watch.finish();
  watch.look([](std::size_t) { return true; });
  EXPECT_EQ(notes.exchanges.size(), 2u);
}

TEST(ExchangeWatch, WithoutAnObserverThereIsNothingToLookAt) {
  ExchangeWatch watch;
  watch.started("first", 8);
  int looks = 0;
  watch.look([&](std::size_t) { return ++looks > 0; });
  EXPECT_EQ(looks, 0);
}

// What one step of a Parallel tells: {buckets told, buckets there are, bytes told, bytes there are,
// milliseconds in waits, overlapping waits, buckets begun before backward ended}.
std::vector<double> observe_steps(Group& group) {
  at::set_num_threads(1);
  torch::manual_seed(5);
  test::Perceptron model(24, 3);
  Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = 0.001});
  AdamW optimizer = parallel.adamw({.lr = 0.05});
  Notes notes;
  Clock::time_point backward_end;
  for (int step = 0; step < 3; ++step) {
    parallel.observe(step == 1 ? &notes : nullptr);
    for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps(1)) {
      model(torch::ones({2, 24})).sub(1).pow(2).mean().backward();
      backward_end = step == 1 ? Clock::now() : backward_end;
    }
    if (step == 1) {  // what the optimizer adds later is not in the step's record
      parallel.observe(nullptr);
    }
    optimizer.step();
  }
  double waited_ms = 0;
  double overlaps = 0;
  for (std::size_t i = 0; i < notes.waits.size(); ++i) {
    const TimeSpan& wait = notes.waits[i];
    waited_ms += std::chrono::duration<double, std::milli>(wait.end - wait.begin).count();
    overlaps += i > 0 && wait.begin < notes.waits[i - 1].end ? 1 : 0;
  }
  double bytes = 0;
  double early = 0;
  for (const Notes::Exchange& exchange : notes.exchanges) {
    bytes += static_cast<double>(exchange.bytes);
    early += exchange.time.begin < backward_end && exchange.time.begin < exchange.time.end ? 1 : 0;
  }
  return {static_cast<double>(notes.exchanges.size()),
          static_cast<double>(parallel.buckets()),
          bytes,
          static_cast<double>(parallel.held().gradients),
          waited_ms,
          overlaps,
          early};
}

TEST(ExchangeWatch, ParallelTellsEveryBucketOfTheObservedSteps) {
  for (const test::RankResult& rank : test::run_ranks(2, observe_steps)) {
    ASSERT_EQ(rank.error, "");
    const std::vector<double>& values = rank.values;
    EXPECT_GT(values[1], 2) << "several buckets";
    EXPECT_EQ(values[0], values[1]) << "each bucket of the one observed step";
    EXPECT_EQ(values[2], values[3]) << "all gradient bytes";
    EXPECT_GT(values[4], 0) << "some time in collectives";
    EXPECT_EQ(values[5], 0) << "waits do not overlap";
    EXPECT_EQ(values[6], values[1]) << "all begun before backward ended";
  }
}

}  // namespace
}  // namespace lockstep::parallel
