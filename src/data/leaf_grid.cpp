#include "data/leaf_grid.h"

#include "base/invariant.h"

#include <numeric>
#include <utility>

namespace lockstep::data {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}
  std::uint64_t next() { return mix(state_ += kGolden); }
  // Uniform below n: the high half of a 128-bit product, biased by less than n / 2⁶⁴.
  std::uint64_t below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{next()} * n) >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  SplitMix64 random(mix(seed + kGolden) ^ mix(static_cast<std::uint64_t>(epoch)));
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

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
