#include "lockstep/group.h"

#include "base/float16.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace lockstep {
namespace {

using test::on_ranks;

TEST(Group, knows_its_rank_size_name_and_deadline) {
  auto groups = Group::of_threads(3, {.deadline = std::chrono::seconds(7), .name = "trio"});
  for (int r = 0; r < 3; ++r) {
    const Group& group = groups[static_cast<std::size_t>(r)];
    EXPECT_EQ(group.rank(), r);
    EXPECT_EQ(group.size(), 3);
    EXPECT_EQ(group.name(), "trio");
    EXPECT_EQ(group.deadline(), std::chrono::seconds(7));
  }
}

TEST(Group, alone_does_what_others_do) {
  Group group = Group::alone();
  EXPECT_EQ(group.size(), 1);
  const auto span = group.allocate_symmetric(64, "own").span(0, 16, Dtype::f32);
  static_cast<float*>(span.data())[3] = 3.0f;
  group.all_reduce(span, {.scale = 0.5}).wait();
  EXPECT_EQ(static_cast<float*>(span.data())[3], 1.5f);
  static_cast<float*>(span.data())[3] = 1.00390625f;  // 1 + 2^-8: halfway in bf16, to even
  group.all_reduce(span, {.op = ReduceOp::mean, .round_to = Dtype::bf16}).wait();
  EXPECT_EQ(static_cast<float*>(span.data())[3], 1.0f);
  group.barrier();
  EXPECT_EQ(group.split(3, 0)->size(), 1);
  EXPECT_FALSE(group.split(-1, 0).has_value());
}

// Nobody leaves a barrier before the last one has come.
TEST(Group, barriers_hold_everybody) {
  std::atomic<int> entered = 0;
  on_ranks(7, [&](Group& group) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      group.barrier();
      EXPECT_GE(entered.load(), round * 7);
      group.barrier();
    }
  });
}

TEST(Group, C30_mean_of_three_elements_by_reduce_scatter) {
  on_ranks(2, [](Group& group) {
    const auto value = static_cast<float>(group.rank() + 1);
    std::vector<float> plain(3, value);
    std::vector<float> block(group.rank() == 0 ? 2 : 1);
    group.reduce_scatter(std::span(plain), std::span(block), {.op = ReduceOp::mean}).wait();
    for (const float mean : block) {
      EXPECT_EQ(mean, 1.5f);
    }
    const auto span = group.allocate_symmetric(12, "three").span(0, 3, Dtype::f32);
    std::fill_n(static_cast<float*>(span.data()), 3, value);
    std::fill(block.begin(), block.end(), 0.0f);
    group.reduce_scatter(span, std::span(block), {.op = ReduceOp::mean}).wait();
    for (const float mean : block) {
      EXPECT_EQ(mean, 1.5f);
    }
    std::vector<std::int32_t> whole(3, group.rank() + 1);
    EXPECT_THROW(group.all_reduce(std::span(whole), {.op = ReduceOp::mean}), UsageError);
  });
}

// (1e8 + 1) + (-1e8 + 1): each pair rounds the 1 away, so the tree gives 0, a running sum gives 1.
TEST(Group, C34_the_documented_order_on_every_rank_for_two_splits) {
  const std::array<float, 4> values{1e8f, 1.0f, -1e8f, 1.0f};
  const float expected = (values[0] + values[1]) + (values[2] + values[3]);
  ASSERT_NE(expected, ((values[0] + values[1]) + values[2]) + values[3]);
  on_ranks(4, [&](Group& group) {
    constexpr std::int64_t kCount = 100'000;
    const auto memory = group.allocate_symmetric(kCount * 4, "split");
    for (const std::int64_t bucket : {kCount, std::int64_t{7'040}}) {
      auto* data = static_cast<float*>(memory.span(0, kCount, Dtype::f32).data());
      std::vector<float> plain(kCount, values[static_cast<std::size_t>(group.rank())]);
      std::copy(plain.begin(), plain.end(), data);
      for (std::int64_t at = 0; at < kCount; at += bucket) {
        const std::int64_t count = std::min(bucket, kCount - at);
        group.all_reduce(memory.span(at * 4, count, Dtype::f32)).wait();
        group.all_reduce(Span(plain.data() + at, count, Dtype::f32)).wait();
      }
      for (std::int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(data[i], expected) << i;
        ASSERT_EQ(plain[static_cast<std::size_t>(i)], expected) << i;
      }
    }
  });
}

TEST(Group, A23_halves_add_in_fp32_and_round_once) {
  on_ranks(4, [](Group& group) {
    Bfloat16 bf16 = to_bfloat16(group.rank() == 0 ? 256.0f : 1.0f);
    group.all_reduce(std::span(&bf16, 1), {.op = ReduceOp::mean}).wait();
    EXPECT_EQ(to_float(bf16), 65.0f);  // 259/4 = 64.75; adding in bf16 gives 64

    Float16 f16 = to_float16(30000.0f);
    group.all_reduce(std::span(&f16, 1), {.op = ReduceOp::mean}).wait();
    EXPECT_EQ(to_float(f16), 30000.0f);  // the sum is far above f16's largest

    const auto span = group.allocate_symmetric(64, "halves").span(0, 1, Dtype::bf16);
    auto* value = static_cast<Bfloat16*>(span.data());
    *value = to_bfloat16(group.rank() == 0 ? 256.0f : 1.0f);
    group.all_reduce(span, {.op = ReduceOp::mean}).wait();
    EXPECT_EQ(to_float(*value), 65.0f);

    float sum = group.rank() == 0 ? 256.0f : 1.0f;
    group.all_reduce(std::span(&sum, 1)).wait();
    EXPECT_EQ(sum, 259.0f);
  });
}

// C33 in small: rounds of f64 reduce_scatter with random delays are exact every time.
TEST(Group, C33_random_delays_change_nothing) {
  on_ranks(3, [](Group& group) {
    std::mt19937 random(static_cast<unsigned>(group.rank()));
    constexpr std::int64_t kCount = 3 * 50'000;
    std::vector<double> input(kCount), block(kCount / 3);
    for (int round = 0; round < 30; ++round) {
      std::fill(input.begin(), input.end(), round + group.rank() * 0.5);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      group.reduce_scatter(std::span(input), std::span(block)).wait();
      for (const double value : block) {
        ASSERT_EQ(value, 3 * round + 1.5);
      }
    }
  });
}

TEST(Group, control_traffic_is_not_counted) {
  on_ranks(2, [](Group& group) {
    group.barrier();
    group.allocate_symmetric(64, "nothing");
    group.split(0, 0);
    EXPECT_EQ(group.traffic().collectives, 0);
    EXPECT_EQ(group.traffic().received + group.traffic().sent, 0);
  });
}

TEST(Work, an_empty_one_is_done) {
  Work work;
  EXPECT_FALSE(work.valid());
  EXPECT_TRUE(work.done());
  work.wait();
}

}  // namespace
}  // namespace lockstep
