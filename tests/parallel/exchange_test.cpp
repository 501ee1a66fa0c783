// The exchanges of the stages (single.cpp, ddp.cpp) against plain arithmetic.
#include "parallel/exchange.h"

#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

namespace lockstep::parallel {
namespace {

constexpr std::int64_t kCount = 64 * 40;

float value(int rank, std::int64_t i) {
  return std::sin(static_cast<float>(i + 1)) * static_cast<float>(rank + 1);
}

float to_bf16_and_back(float x) { return to_float(to_bfloat16(x)); }

void fill(const SymmetricSpan& span, int rank) {
  for (std::int64_t i = 0; i < span.count; ++i) {
    static_cast<float*>(span.data())[i] = value(rank, i);
  }
}

TEST(Exchange, SingleTakesTheMeanInPlace) {
  const auto device = make_cpu_device();
  Group group = Group::alone();
  const auto exchange = make_single_exchange(*device);
  const SymmetricMemory memory = group.allocate_symmetric(kCount * 4, "gradients");
  const SymmetricSpan span = memory.span(0, kCount, Dtype::f32);
  fill(span, 0);
  EXPECT_FALSE(exchange->is_complete(0));
  exchange->start({.name = "b", .parts = {{span, Dtype::bf16}}, .scale = 0.25});
  EXPECT_TRUE(exchange->is_complete(0));
  exchange->finish();
  double squares = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const float expected = to_bf16_and_back(value(0, i) * 0.25f);
    EXPECT_EQ(static_cast<float*>(span.data())[i], expected) << i;
    squares += static_cast<double>(expected) * expected;
  }
  EXPECT_NEAR(exchange->squares().sum.value(), squares, squares * 1e-12);
  EXPECT_EQ(exchange->counts_squares_of(kCount), (Range{0, kCount}));
}

using MakeExchange = std::unique_ptr<Exchange> (*)(Device&, Group&, Stopwatch&);

// Each rank's memory and the sum of squares it counted.
struct Exchanged {
  std::vector<std::vector<float>> results;
  std::vector<double> squares;
};

Exchanged exchange_on(int ranks, MakeExchange make) {
  std::vector<Group> groups = Group::of_threads(ranks);
  std::vector<double> squares(static_cast<std::size_t>(ranks));
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank, index = static_cast<std::size_t>(rank)] {
      const auto device = make_cpu_device();
      Stopwatch exposed;
      Group& group = groups[index];
      const auto exchange = make(*device, group, exposed);
      const SymmetricMemory memory = group.allocate_symmetric(kCount * 4, "gradients");
      const SymmetricSpan span = memory.span(0, kCount, Dtype::f32);
      fill(span, rank);
      exchange->start({.name = "b", .parts = {{span, {}}}, .scale = 1.0 / ranks});
      exchange->finish();
      squares[index] = exchange->squares().sum.value();
      const auto* data = static_cast<const float*>(span.data());
      results[index].assign(data, data + kCount);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return {results, squares};
}

// The mean of all ranks' elements, taken from the rank that `holder` names, and its squares once.
template <class Holder>
void expect_mean(const Exchanged& all, int ranks, Holder holder) {
  double sum = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const float mean = all.results.at(holder(i))[static_cast<std::size_t>(i)];
    EXPECT_NEAR(mean, value(0, i) * static_cast<float>(ranks + 1) / 2, 1e-6);
    sum += static_cast<double>(mean) * mean;
  }
  const double counted = std::accumulate(all.squares.begin(), all.squares.end(), 0.0);
  EXPECT_NEAR(counted, sum, sum * 1e-12) << ranks;
}

TEST(Exchange, DdpGivesAllRanksTheMeanAndCountsSquaresOnce) {
  for (const int ranks : {1, 2, 3, 4}) {
    const Exchanged all = exchange_on(ranks, make_ddp_exchange);
    expect_mean(all, ranks, [](std::int64_t) { return 0; });
    for (const std::vector<float>& result : all.results) {
      EXPECT_EQ(result, all.results[0]);
    }
  }
}

TEST(Exchange, ShardedStagesGiveEachRankTheMeanOfItsShardAndLeaveTheRest) {
  for (const MakeExchange make : {make_zero1_exchange, make_zero2_exchange}) {
    for (const int ranks : {1, 2, 4}) {
      const Exchanged all = exchange_on(ranks, make);
      const std::int64_t shard = kCount / ranks;
      expect_mean(all, ranks, [&](std::int64_t i) { return static_cast<std::size_t>(i / shard); });
      for (std::int64_t i = shard; i < kCount; ++i) {
        EXPECT_EQ(all.results[0][static_cast<std::size_t>(i)], value(0, i));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::parallel
