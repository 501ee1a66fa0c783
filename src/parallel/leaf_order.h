// The order in which one rank, or one shard, adds its leaves: as a running sum, or (reproducible)
// as the summation tree, so that k leaves here equal k more ranks elsewhere bit for bit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lockstep::parallel {

enum class LeafOrder : std::uint8_t { running, tree };

// Leaf `leaf` (from 0, all in order) of a tree whose partial sums stand on a stack. Leaves go in
// pairs: open(depth) makes an even one partial sum `depth`, join(depth) adds the odd one to it;
// merge(depth) adds partial sum `depth` to the one before it. The sum ends at depth 0.
template <class Open, class Join, class Merge>
void add_leaf_in_tree(std::int64_t leaf, const Open& open, const Join& join, const Merge& merge) {
  const auto bits = static_cast<std::uint64_t>(leaf);
  // One bits of leaf/2 are the partial sums that stand before.
  auto top = static_cast<std::size_t>(std::popcount(bits >> 1));
  if ((bits & 1) == 0) {
    open(top);
    return;
  }
  join(top);
  for (int merges = std::countr_one(bits) - 1; merges > 0; --merges, --top) {
    merge(top);
  }
}

}  // namespace lockstep::parallel
