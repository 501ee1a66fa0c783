#include "base/bucket_plan.h"

#include "base/invariant.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace lockstep {

std::vector<std::vector<std::size_t>> plan_buckets(std::span<const std::int64_t> member_bytes,
                                                   const BucketSizes& sizes) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t held = 0;
  bool open = false;
  for (std::size_t i = member_bytes.size(); i-- > 0;) {
    const std::int64_t limit =
        buckets.size() <= 1 ? std::min(sizes.first_bytes, sizes.bytes) : sizes.bytes;
    if (open && held > 0 && held + member_bytes[i] > limit) {
      open = false;
    }
    if (!open) {
      buckets.emplace_back();
      held = 0;
    }
    buckets.back().push_back(i);
    held += member_bytes[i];
    open = sizes.bytes > 0;
  }
  return buckets;
}

std::vector<std::vector<std::size_t>> plan_units(std::span<const std::size_t> unit_of_member,
                                                 std::int64_t blocks) {
  LOCKSTEP_INVARIANT(blocks, >=, 1);
  std::map<std::size_t, std::vector<std::size_t>, std::greater<>> by_bucket;  // the root's is 0
  for (std::size_t member = unit_of_member.size(); member-- > 0;) {
    const std::size_t unit = unit_of_member[member];
    const std::size_t bucket = unit == 0 ? 0 : 1 + (unit - 1) / static_cast<std::size_t>(blocks);
    by_bucket[bucket].push_back(member);
  }
  std::vector<std::vector<std::size_t>> buckets;
  for (auto& [bucket, members] : by_bucket) {
    buckets.push_back(std::move(members));
  }
  return buckets;
}

BucketSizes bucket_sizes_of(double mb) {
  LOCKSTEP_INVARIANT(mb, >=, 0.0);
  BucketSizes sizes;
  sizes.bytes = static_cast<std::int64_t>(std::llround(mb * 1e6));
  sizes.first_bytes = std::min(sizes.first_bytes, sizes.bytes / 4);
  return sizes;
}

}  // namespace lockstep
