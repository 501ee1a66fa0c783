// Which window each leaf of each step trains on: one order per (seed, epoch), whatever the number
// of ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

// Sample (step·M + leaf)·B + b of an endless sequence of epochs, each a fresh permutation of all
// windows: every window once per epoch, also where an epoch ends inside a step.
class LeafGrid {
 public:
  struct Shape {
    std::int64_t windows = 1;      // in the training part
    std::int64_t leaves = 1;       // M: micro-batches of a step, over all ranks
    std::int64_t micro_batch = 1;  // B: sequences of a leaf
  };
  LeafGrid(const Shape& shape, std::uint64_t seed);

  // The windows of a leaf's B sequences. Steps count from 0. Cheap when called in order.
  std::vector<std::int64_t> windows_of(std::int64_t step, std::int64_t leaf);

 private:
  std::int64_t window_of(std::int64_t sample);

  Shape shape_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;  // of order_
  std::vector<std::int64_t> order_;
};

}  // namespace lockstep::data
