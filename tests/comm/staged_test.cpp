#include "comm/staged.h"

#include "comm/plain_checks.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::on_ranks;

class Staged : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Staged, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(Staged, every_collective_and_type_gives_the_trees_bits_beyond_a_slot) {
  on_ranks(GetParam(), [](Group& group) {
    test::for_each_dtype([&]<class T>() {
      const auto slot = static_cast<std::int64_t>(Control::kSlotBytes / sizeof(T));
      test::check_all<T>(group, slot + 1);
      test::check_all_gather<T>(group, group.size() * slot + 1);
    });
  });
}

TEST_P(Staged, chunks_meet_without_gap_or_overlap) {
  on_ranks(GetParam(), [](Group& group) {
    constexpr std::int64_t kStage = Control::kStageBytes / 4;
    for (const std::int64_t count : {kStage - 1, kStage, kStage + 1}) {
      test::check_all_reduce<float>(group, count, {.op = ReduceOp::mean});
      test::check_broadcast<float>(group, count, group.size() - 1);
    }
    const std::int64_t several = 3 * kStage + 77;
    test::check_all_reduce<float>(group, several, {.op = ReduceOp::mean});
    test::check_reduce_scatter<float>(group, several, {.op = ReduceOp::sum});
    test::check_all_gather<float>(group, group.size() * (kStage + 3) + 1);
  });
}

TEST_P(Staged, operations_of_all_algorithms_follow_each_other) {
  on_ranks(GetParam(), [](Group& group) {
    for (int round = 0; round < 10; ++round) {
      test::check_all_reduce<float>(group, 30'000, {});
      test::check_all_reduce<float>(group, 3, {});
      test::check_reduce_scatter<double>(group, 5'000, {});
      group.barrier();
    }
  });
}

TEST(StagedTraffic, counts_what_moves_between_ranks) {
  on_ranks(4, [](Group& group) {
    constexpr std::int64_t kCount = 1'000'000;
    std::vector<float> data(kCount), block(kCount / 4);
    const Span whole{std::span(data)};
    const Span part{std::span(block)};
    // Chunk by chunk, each rank owns the granule-aligned block of it.
    std::int64_t own = 0;
    constexpr std::int64_t kStage = Control::kStageBytes / 4;
    for (std::int64_t at = 0; at < kCount; at += kStage) {
      own += block_of(std::min(kStage, kCount - at), 4, group.rank(), kGranule).size();
    }
    group.all_reduce(whole).wait();
    EXPECT_EQ(group.traffic().received, 3 * own * 4);
    EXPECT_EQ(group.traffic().sent, 3 * own * 4);
    group.reduce_scatter(whole, part).wait();
    EXPECT_EQ(group.traffic().received, 3 * own * 4 + 3 * kCount);
    group.all_gather(part, whole).wait();
    EXPECT_EQ(group.traffic().received, 3 * own * 4 + 6 * kCount);
    group.broadcast(whole, 0).wait();
    EXPECT_EQ(group.traffic().received,
              3 * own * 4 + 6 * kCount + (group.rank() == 0 ? 0 : 4 * kCount));
    EXPECT_EQ(group.traffic().sent, 3 * own * 4);
  });
}

}  // namespace
}  // namespace lockstep::comm
