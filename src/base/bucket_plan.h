// Which parameters share a bucket: fixed by sizes alone, so that every rank, and the planner
// beforehand, come to the same answer. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct BucketSizes {
  std::int64_t bytes =
      25'000'000;  // a bucket holds at most this, or one member; 0: one member each
  std::int64_t first_bytes =
      1'000'000;  // the first one closes sooner, so that exchange starts early
};

// `member_bytes` in registration order. Returns buckets in the order they fill in backward: each a
// list of member indices, in reverse registration order. A member is never split.
std::vector<std::vector<std::size_t>> plan_buckets(std::span<const std::int64_t> member_bytes,
                                                   const BucketSizes& sizes);

// The same where each unit's parameters travel together (zero3): `unit_of_member` counts units from
// 1 in registration order, 0 is what lies outside of all. `blocks` (≥ 1) units in a row share a
// bucket; what lies outside comes last, since the first layer's parameters are among it.
std::vector<std::vector<std::size_t>> plan_units(std::span<const std::size_t> unit_of_member,
                                                 std::int64_t blocks);

// The BucketSizes of `--bucket-mb mb` (1 MB = 1e6 bytes): the first bucket holds 1 MB, or a quarter
// of the others when that is less.
BucketSizes bucket_sizes_of(double mb);

}  // namespace lockstep
