#include "base/bucket_plan.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace lockstep {
namespace {

using Sizes = std::vector<std::int64_t>;
using Buckets = std::vector<std::vector<std::size_t>>;

std::int64_t bytes_of(const std::vector<std::size_t>& bucket, const Sizes& sizes) {
  return std::accumulate(bucket.begin(), bucket.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::size_t i) { return sum + sizes[i]; });
}

TEST(BucketPlan, every_member_once_in_reverse_order_and_no_bucket_above_its_limit) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    Sizes sizes(random() % 30);
    for (std::int64_t& size : sizes) {
      size = static_cast<std::int64_t>(random() % 100);
    }
    const BucketSizes limits{.bytes = 1 + static_cast<std::int64_t>(random() % 150),
                             .first_bytes = 1 + static_cast<std::int64_t>(random() % 150)};
    const Buckets buckets = plan_buckets(sizes, limits);
    std::size_t next = sizes.size();
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      ASSERT_FALSE(buckets[b].empty());
      for (const std::size_t member : buckets[b]) {
        ASSERT_EQ(member, --next);
      }
      const std::int64_t limit = b == 0 ? std::min(limits.first_bytes, limits.bytes) : limits.bytes;
      const bool one_large =
          std::ranges::count_if(buckets[b], [&](std::size_t i) { return sizes[i] > 0; }) == 1;
      ASSERT_TRUE(bytes_of(buckets[b], sizes) <= limit || one_large);
      // Greedy: the next bucket's first member would not have fitted.
      if (b + 1 < buckets.size()) {
        ASSERT_GT(bytes_of(buckets[b], sizes) + sizes[buckets[b + 1].front()], limit);
      }
    }
    ASSERT_EQ(next, 0u);
  }
}

TEST(BucketPlan, zero_bytes_means_one_member_each) {
  EXPECT_EQ(plan_buckets(Sizes{3, 1, 2}, {.bytes = 0}), (Buckets{{2}, {1}, {0}}));
}

TEST(BucketPlan, the_first_bucket_is_smaller) {
  const Sizes sizes{10, 10, 10, 10};
  EXPECT_EQ(plan_buckets(sizes, {.bytes = 30, .first_bytes = 10}), (Buckets{{3}, {2, 1, 0}}));
  EXPECT_EQ(plan_buckets(sizes, {.bytes = 100, .first_bytes = 100}), (Buckets{{3, 2, 1, 0}}));
  EXPECT_TRUE(plan_buckets({}, {}).empty());
}

TEST(BucketPlan, sizes_of_the_option_are_decimal_megabytes) {
  EXPECT_EQ(bucket_sizes_of(25).bytes, 25'000'000);
  EXPECT_EQ(bucket_sizes_of(0.5).bytes, 500'000);
  EXPECT_EQ(bucket_sizes_of(0).bytes, 0);
  EXPECT_THROW(bucket_sizes_of(-1), InvariantBroken);
}

TEST(PlanUnits, units_travel_from_the_last_to_the_first_and_what_is_outside_at_the_end) {
  const std::vector<std::size_t> units{0, 1, 1, 2, 3, 3, 0};
  using Plan = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(plan_units(units, 1), (Plan{{5, 4}, {3}, {2, 1}, {6, 0}}));
  EXPECT_EQ(plan_units(units, 2), (Plan{{5, 4}, {3, 2, 1}, {6, 0}}));
  EXPECT_EQ(plan_units(units, 9), (Plan{{5, 4, 3, 2, 1}, {6, 0}}));
  EXPECT_EQ(plan_units(std::vector<std::size_t>{0, 0}, 1), (Plan{{1, 0}}));
  EXPECT_TRUE(plan_units({}, 1).empty());
}

}  // namespace
}  // namespace lockstep
