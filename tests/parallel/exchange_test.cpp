// The exchanges of the stages (single.cpp, ddp.cpp) against plain arithmetic.
#include "parallel/exchange.h"

#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(Exchange, DdpGivesAllRanksTheMeanAndCountsSquaresOnce) {
  for (const int ranks : {1, 2, 3, 4}) {
    std::vector<Group> groups = Group::of_threads(ranks);
    std::vector<double> squares(static_cast<std::size_t>(ranks));
    std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank, index = static_cast<std::size_t>(rank)] {
        const auto device = make_cpu_device();
        Stopwatch exposed;
        Group& group = groups[index];
        const auto exchange = make_ddp_exchange(*device, group, exposed);
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
    double sum = 0;
    double counted = 0;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const float mean = results[0][static_cast<std::size_t>(i)];
      EXPECT_NEAR(mean, value(0, i) * static_cast<float>(ranks + 1) / 2, 1e-6);
      sum += static_cast<double>(mean) * mean;
    }
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      EXPECT_EQ(results[rank], results[0]);
      counted += squares[rank];
    }
    EXPECT_NEAR(counted, sum, sum * 1e-12) << ranks;
  }
}

}  // namespace
}  // namespace lockstep::parallel
