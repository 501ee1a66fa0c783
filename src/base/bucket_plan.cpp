#include "base/bucket_plan.h"

#include "base/invariant.h"

#include <algorithm>
#include <cmath>

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

BucketSizes bucket_sizes_of(double mb) {
  LOCKSTEP_INVARIANT(mb, >=, 0.0);
  BucketSizes sizes;
  sizes.bytes = static_cast<std::int64_t>(std::llround(mb * 1e6));
  sizes.first_bytes = std::min(sizes.first_bytes, sizes.bytes / 4);
  return sizes;
}

}  // namespace lockstep
