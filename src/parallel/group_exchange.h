// What the stages share whose buckets travel as one Work each: waiting, progress, squares.
#pragma once

#include "parallel/exchange.h"

#include <vector>

namespace lockstep::parallel {

class GroupExchange : public Exchange {
 public:
  GroupExchange(Device& device, Group& group, Stopwatch& exposed)
      : device_(device), group_(group), exposed_(exposed) {}

  void start(const FullBucket& bucket) final;
  void progress() final;
  bool is_complete(std::size_t n) final { return n < works_.size() && works_[n].done(); }
  void wait_for(std::size_t n) final;
  void finish() final;
  Range counts_squares_of(std::int64_t count) const final {
    return block_of(count, group_.size(), group_.rank(), kGranule);
  }

 protected:
  // Issues the bucket's collective. `options` has its name, its scale, and an on_reduced that
  // counts the squares: each rank reduces its own elements, so over all ranks every granule counts
  // once.
  virtual Work issue(const FullBucket& bucket, const ReduceOptions& options) = 0;
  // The same into this rank's shard, in place.
  Work scatter_in_place(const FullBucket& bucket, const ReduceOptions& options);
  Group& group() { return group_; }
  Device& device() { return device_; }

 private:
  Device& device_;
  Group& group_;
  Stopwatch& exposed_;
  std::vector<Work> works_;
};

}  // namespace lockstep::parallel
