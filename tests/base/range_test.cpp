#include "base/range.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

TEST(Range, size_empty_and_contains_agree_with_membership) {
  for (std::int64_t begin = 0; begin < 6; ++begin) {
    for (std::int64_t end = begin; end < 6; ++end) {
      const Range range{begin, end};
      EXPECT_EQ(range.size(), end - begin);
      EXPECT_EQ(range.empty(), begin == end);
      for (std::int64_t from = 0; from < 6; ++from) {
        for (std::int64_t to = from; to < 6; ++to) {
          bool inside = true;
          for (std::int64_t i = from; i < to; ++i) {
            inside = inside && begin <= i && i < end;
          }
          EXPECT_EQ(range.contains({from, to}), inside);
        }
      }
    }
  }
}

TEST(Range, intersect_holds_exactly_the_common_elements) {
  for (std::int64_t a = 0; a < 6; ++a) {
    for (std::int64_t b = a; b < 6; ++b) {
      for (std::int64_t c = 0; c < 6; ++c) {
        for (std::int64_t d = c; d < 6; ++d) {
          const Range common = intersect({a, b}, {c, d});
          EXPECT_GE(common.size(), 0);
          for (std::int64_t i = 0; i < 6; ++i) {
            const bool in_both = a <= i && i < b && c <= i && i < d;
            EXPECT_EQ(common.begin <= i && i < common.end, in_both);
          }
        }
      }
    }
  }
}

TEST(Range, round_up_gives_the_smallest_multiple) {
  for (std::int64_t multiple = 1; multiple < 70; ++multiple) {
    for (std::int64_t n = 0; n < 300; ++n) {
      std::int64_t want = 0;
      while (want < n) {
        want += multiple;
      }
      ASSERT_EQ(round_up(n, multiple), want);
    }
  }
}

// Blocks lie end to end, cover [0, n), start on granules, and only the last ones are short.
TEST(Range, blocks_partition_every_length) {
  for (const std::int64_t granule : {1, 2, 3, 64}) {
    for (int parts = 1; parts <= 9; ++parts) {
      for (std::int64_t n = 0; n <= 700; ++n) {
        const std::int64_t full = block_of(n, parts, 0, granule).size();
        std::int64_t next = 0;
        for (int part = 0; part < parts; ++part) {
          const Range block = block_of(n, parts, part, granule);
          ASSERT_EQ(block.begin, next);
          ASSERT_LE(block.size(), full);
          ASSERT_TRUE(block.end == n || block.size() == full);
          ASSERT_TRUE(block.begin == n || block.begin % granule == 0);
          next = block.end;
        }
        ASSERT_EQ(next, n);
        // No block is longer than equal shares, rounded up to a granule, need.
        ASSERT_LT(full, n / parts + 1 + granule);
      }
    }
  }
}

TEST(Range, blocks_of_nothing_and_of_fewer_elements_than_parts) {
  for (int part = 0; part < 7; ++part) {
    EXPECT_TRUE(block_of(0, 7, part).empty());
    EXPECT_EQ(block_of(3, 7, part).size(), part < 3 ? 1 : 0);  // D37: one index each, or none
  }
  EXPECT_EQ(block_of(10, 4, 3), (Range{9, 10}));
  EXPECT_EQ(block_of(256, 4, 1, 64), (Range{64, 128}));
}

TEST(Range, blocks_of_billions_do_not_overflow) {
  const std::int64_t n = std::int64_t{1} << 40;
  EXPECT_EQ(block_of(n, 1024, 1023).end, n);
  EXPECT_EQ(block_of(n - 1, 1024, 1023).size(), n / 1024 - 1);
}

TEST(Range, blocks_outside_break_an_invariant) {
  EXPECT_THROW(block_of(-1, 2, 0), InvariantBroken);
  EXPECT_THROW(block_of(4, 2, 2), InvariantBroken);
  EXPECT_THROW(block_of(4, 2, -1), InvariantBroken);
}

TEST(Range, tree_split_is_the_largest_power_of_two_below) {
  for (std::int64_t leaves = 2; leaves <= 1025; ++leaves) {
    const std::int64_t split = tree_split(leaves);
    ASSERT_TRUE(is_power_of_two(split));
    ASSERT_LT(split, leaves);
    ASSERT_GE(split * 2, leaves);
  }
  EXPECT_THROW(tree_split(1), InvariantBroken);
}

TEST(Range, is_power_of_two_by_listing) {
  std::vector<std::int64_t> powers;
  for (std::int64_t n = -4; n <= 1100; ++n) {
    if (is_power_of_two(n)) {
      powers.push_back(n);
    }
  }
  EXPECT_EQ(powers, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}));
}

}  // namespace
}  // namespace lockstep
