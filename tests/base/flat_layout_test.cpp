#include "base/flat_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace lockstep {
namespace {

using Sizes = std::vector<std::int64_t>;

// Everything that design's "flat parameter" promises.
void check_layout(const Sizes& sizes, int ranks) {
  const FlatLayout layout(sizes, ranks);
  ASSERT_EQ(layout.members(), sizes.size());
  ASSERT_EQ(layout.ranks(), ranks);
  std::int64_t previous_end = 0;
  std::int64_t used = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Range member = layout.member(i);
    ASSERT_EQ(member.begin % kGranule, 0);
    ASSERT_EQ(member.size(), sizes[i]);
    ASSERT_GE(member.begin, previous_end);
    ASSERT_LT(member.begin - previous_end, kGranule);
    previous_end = member.end;
    used += sizes[i];
  }
  ASSERT_GE(layout.size(), previous_end);
  ASSERT_LT(layout.size() - previous_end, kGranule * (ranks + 1));
  ASSERT_EQ(layout.size() % (ranks * kGranule), 0);
  ASSERT_EQ(layout.padding(), layout.size() - used);
}

void check_shards(const Sizes& sizes, int ranks) {
  const FlatLayout layout(sizes, ranks);
  std::int64_t next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Range shard = layout.shard(rank);
    ASSERT_EQ(shard.begin, next);
    ASSERT_EQ(shard.size(), layout.size() / ranks);
    ASSERT_EQ(shard.begin % kGranule, 0);
    ASSERT_EQ(shard, block_of(layout.size(), ranks, rank, kGranule));
    next = shard.end;
  }
  ASSERT_EQ(next, layout.size());
}

TEST(FlatLayout, one_member_of_every_size_up_to_a_few_granules) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (std::int64_t size = 0; size <= 3 * kGranule + 1; ++size) {
      ASSERT_NO_FATAL_FAILURE(check_layout({size}, ranks));
      ASSERT_NO_FATAL_FAILURE(check_shards({size}, ranks));
    }
  }
}

TEST(FlatLayout, many_members_of_random_sizes) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Sizes sizes(random() % 12);
    for (std::int64_t& size : sizes) {
      size = static_cast<std::int64_t>(random() % (round % 2 == 0 ? 5 : 1000));
    }
    const int ranks = 1 + static_cast<int>(random() % 8);
    ASSERT_NO_FATAL_FAILURE(check_layout(sizes, ranks));
    ASSERT_NO_FATAL_FAILURE(check_shards(sizes, ranks));
  }
}

TEST(FlatLayout, known_values) {
  const Sizes sizes{1, 64, 65, 0, 10};
  const FlatLayout layout(sizes, 2);
  EXPECT_EQ(layout.member(0), (Range{0, 1}));
  EXPECT_EQ(layout.member(1), (Range{64, 128}));
  EXPECT_EQ(layout.member(2), (Range{128, 193}));
  EXPECT_EQ(layout.member(3), (Range{256, 256}));
  EXPECT_EQ(layout.member(4), (Range{256, 266}));
  EXPECT_EQ(layout.size(), 384);  // 320 in granules, 384 in two equal shards of granules
  EXPECT_EQ(layout.padding(), 384 - 140);
  EXPECT_EQ(layout.shard(1), (Range{192, 384}));
}

TEST(FlatLayout, of_nothing_is_empty) {
  EXPECT_EQ(FlatLayout({}, 4).size(), 0);
  EXPECT_TRUE(FlatLayout({}, 4).shard(3).empty());
  EXPECT_EQ(FlatLayout().size(), 0);
}

TEST(FlatLayout, misuse_breaks_an_invariant) {
  const Sizes sizes{5};
  EXPECT_THROW(FlatLayout(sizes, 0), InvariantBroken);
  EXPECT_THROW(FlatLayout(Sizes{-1}, 1), InvariantBroken);
  EXPECT_THROW(FlatLayout(sizes, 2).shard(2), InvariantBroken);
  EXPECT_THROW(FlatLayout(sizes, 2).shard(-1), InvariantBroken);
  EXPECT_THROW(FlatLayout(sizes, 2).member(1), std::out_of_range);
}

}  // namespace
}  // namespace lockstep
