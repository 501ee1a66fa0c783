// Integer arithmetic of sharding: half-open element ranges, padding, who owns what. Pure.
#pragma once

#include "base/invariant.h"

#include <algorithm>
#include <cstdint>

namespace lockstep {

// Members of a flat parameter start on this many elements, and no shard cuts one such granule.
inline constexpr std::int64_t kGranule = 64;

// [begin, end) in elements.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(Range other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  friend constexpr bool operator==(Range, Range) = default;
};

// The overlap of two ranges; empty ([x, x)) where they do not meet.
constexpr Range intersect(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// The smallest multiple of `multiple` (> 0) that is ≥ n.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Block `index` of `parts` equal blocks of n elements, each a multiple of `granule`; the last ones
// may be short or empty. With granule 1 this is what reduce_scatter and all_gather give each rank.
constexpr Range block_of(std::int64_t n, int parts, int index, std::int64_t granule = 1) {
  LOCKSTEP_INVARIANT(n, >=, 0);
  LOCKSTEP_INVARIANT(index, >=, 0);
  LOCKSTEP_INVARIANT(index, <, parts);
  const std::int64_t block = round_up((n + parts - 1) / parts, granule);
  return {std::min(n, index * block), std::min(n, (index + 1) * block)};
}

// The larger power of two of the summation tree: sum(lo,hi) = sum(lo,mid) + sum(mid,hi) with
// mid = lo + tree_split(hi - lo). Needs leaves ≥ 2.
constexpr std::int64_t tree_split(std::int64_t leaves) {
  LOCKSTEP_INVARIANT(leaves, >=, 2);
  std::int64_t split = 1;
  while (split * 2 < leaves) {
    split *= 2;
  }
  return split;
}

constexpr bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace lockstep
