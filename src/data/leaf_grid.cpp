#include "data/leaf_grid.h"

#include "base/epoch_order.h"
#include "base/invariant.h"

namespace lockstep::data {

LeafGrid::LeafGrid(const Shape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {
  LOCKSTEP_INVARIANT(shape.windows, >=, 1);
  LOCKSTEP_INVARIANT(shape.leaves, >=, 1);
  LOCKSTEP_INVARIANT(shape.micro_batch, >=, 1);
}

std::int64_t LeafGrid::window_of(std::int64_t sample) {
  const std::int64_t epoch = sample / shape_.windows;
  if (epoch != epoch_) {
    order_ = epoch_order(shape_.windows, seed_, epoch);
    epoch_ = epoch;
  }
  return order_[static_cast<std::size_t>(sample % shape_.windows)];
}

std::vector<std::int64_t> LeafGrid::windows_of(std::int64_t step, std::int64_t leaf) {
  LOCKSTEP_INVARIANT(step, >=, 0);
  LOCKSTEP_INVARIANT(leaf, >=, 0);
  LOCKSTEP_INVARIANT(leaf, <, shape_.leaves);
  std::vector<std::int64_t> windows(static_cast<std::size_t>(shape_.micro_batch));
  const std::int64_t first = (step * shape_.leaves + leaf) * shape_.micro_batch;
  for (std::size_t b = 0; b < windows.size(); ++b) {
    windows[b] = window_of(first + static_cast<std::int64_t>(b));
  }
  return windows;
}

}  // namespace lockstep::data
