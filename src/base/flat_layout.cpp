#include "base/flat_layout.h"

namespace lockstep {

FlatLayout::FlatLayout(std::span<const std::int64_t> sizes, int ranks) : ranks_(ranks) {
  LOCKSTEP_INVARIANT(ranks, >=, 1);
  members_.reserve(sizes.size());
  std::int64_t next = 0;
  for (const std::int64_t size : sizes) {
    LOCKSTEP_INVARIANT(size, >=, 0);
    members_.push_back({next, next + size});
    next = round_up(next + size, kGranule);
  }
  size_ = round_up(next, ranks * kGranule);
}

Range FlatLayout::shard(int rank) const {
  LOCKSTEP_INVARIANT(rank, >=, 0);
  LOCKSTEP_INVARIANT(rank, <, ranks_);
  const std::int64_t length = size_ / ranks_;
  return {rank * length, (rank + 1) * length};
}

std::int64_t FlatLayout::padding() const {
  std::int64_t used = 0;
  for (const Range member : members_) {
    used += member.size();
  }
  return size_ - used;
}

}  // namespace lockstep
