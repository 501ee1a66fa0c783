#include "plan/outline.h"

#include "lockstep/error.h"
#include "plan/queries.h"

#include <gtest/gtest.h>

namespace lockstep::plan {
namespace {

TEST(Outline, shards_are_the_largest_part) {
  EXPECT_EQ(shard_of({10, 3}, 4), (Amount{3, 1}));
  EXPECT_EQ(shard_of({10, 3}, 1), (Amount{10, 3}));
  EXPECT_EQ(shard_of({0, 0}, 7), (Amount{0, 0}));
}

TEST(Outline, of_members_adds_up_and_cuts_into_units) {
  const auto members = members_of(5, 64, 257);
  const Outline outline = outline_of(members, {.unit_blocks = 2});
  Amount sum = outline.root;
  for (const Amount& unit : outline.units) {
    sum += unit;
  }
  EXPECT_EQ(sum, outline.trained);
  EXPECT_EQ(outline.blocks, 5);
  ASSERT_EQ(outline.units.size(), 3u);
  EXPECT_EQ(outline.units[0].narrow, 2 * outline.units[2].narrow);
  EXPECT_EQ(outline.units[2].wide, 4 * 64);
  EXPECT_EQ(outline.root, (Amount{265 * 64, 2 * 64}));
  EXPECT_TRUE(outline.parts_known);
}

TEST(Outline, buckets_are_ready_when_their_last_member_is) {
  const Outline outline = outline_of(members_of(3, 64, 257), {.bucket_mb = 0});
  ASSERT_EQ(outline.buckets.size(), 2u + 3 * 12 + 2);
  EXPECT_EQ(outline.buckets.front().after, 0) << "the final norm: with the head";
  EXPECT_EQ(outline.buckets[2].after, 1) << "the last block is the first of backward";
  EXPECT_EQ(outline.buckets[2 + 3 * 12 - 1].after, 3);
  EXPECT_EQ(outline.buckets.back().after, 4) << "the embedding";
  Amount sum;
  for (const Bucket& bucket : outline.buckets) {
    sum += bucket.amount;
  }
  EXPECT_EQ(sum, outline.trained);
  const Outline one = outline_of(members_of(3, 64, 257), {.bucket_mb = 1e9});
  EXPECT_EQ(one.buckets.back().after, 4);
}

TEST(Outline, of_a_number_in_equal_parts_adds_up) {
  for (const std::int64_t elements : {1, 31, 32, 1'000'003}) {
    const Outline outline = outline_of(elements, 0, {.bucket_mb = 0.1});
    EXPECT_FALSE(outline.parts_known);
    Amount sum;
    for (const Amount& unit : outline.units) {
      sum += unit;
    }
    EXPECT_EQ(sum.narrow, elements);
    std::int64_t exchanged = 0;
    std::int64_t before = 0;
    for (const Bucket& bucket : outline.buckets) {
      exchanged += bucket.amount.narrow * bucket.count;
      EXPECT_LE(bucket.amount.narrow, 50'000);
      EXPECT_GE(bucket.after, before);
      before = bucket.after;
    }
    EXPECT_GE(exchanged, elements);
    EXPECT_LE(exchanged, elements + static_cast<std::int64_t>(outline.buckets.size()));
    EXPECT_EQ(before, 32) << "the last one waits for all of backward";
  }
  EXPECT_TRUE(outline_of(1000, 4, {}).parts_known);
}

// 4 PB of gradients in 25 MB: an entry stands for many collectives.
TEST(Outline, entries_stay_few) {
  const Outline outline = outline_of(kMostParameters, 0, {});
  EXPECT_LE(outline.buckets.size(), 1024u);
  std::int64_t collectives = 0;
  for (const Bucket& bucket : outline.buckets) {
    collectives += bucket.count;
  }
  EXPECT_EQ(collectives, kMostParameters * 2 / 25'000'000);
}

TEST(Outline, frozen_shares_are_taken_of_every_member) {
  const Outline outline =
      outline_of(members_of(2, 64, 100), {.bucket_mb = 25, .frozen_ppm = 250'000});
  const Outline whole = outline_of(members_of(2, 64, 100), {});
  EXPECT_EQ(outline.trained.elements() + outline.frozen.elements(), whole.trained.elements());
  EXPECT_EQ(outline.frozen.elements(), whole.trained.elements() / 4);
  EXPECT_EQ(outline_of(kMostParameters, 0, {.frozen_ppm = 999'999}).trained.narrow,
            kMostParameters / 1'000'000);
}

TEST(Outline, a_number_has_no_single_parameters) {
  EXPECT_THROW(outline_of(1000, 0, {.bucket_mb = 0}), UsageError);
}

}  // namespace
}  // namespace lockstep::plan
