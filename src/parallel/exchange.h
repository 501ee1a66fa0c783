// What a stage is: how the gradients of a bucket travel. One small class per stage; buckets, hooks,
// accumulation and the optimizer are shared.
#pragma once

#include "base/range.h"
#include "lockstep/group.h"
#include "optim/norm.h"
#include "parallel/device.h"
#include "parallel/exchange_watch.h"
#include "parallel/gradient_windows.h"
#include "parallel/shard_sums.h"
#include "parallel/stopwatch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::parallel {

// One leaf's gradients of a bucket, as backward left them, and where their mean ends.
struct LeafOfBucket {
  GradientWindows* windows = nullptr;  // that they travel through
  ShardSums* sums = nullptr;
  std::vector<LeafOfPart> parts = {};  // one per flat parameter
  std::int64_t number = 0;             // the leaf's, of this rank in this step, from 0
  LeafOrder order = LeafOrder::running;
  bool last = false;  // then the sum becomes the mean
};

// A bucket whose gradients are complete on this rank.
struct FullBucket {
  std::string name = {};                  // in errors and traces
  std::vector<ReducePart> parts = {};     // one per flat parameter: the mean ends in place
  std::optional<double> scale = {};       // 1/M; nothing when M is 1
  std::optional<LeafOfBucket> leaf = {};  // instead of parts: reduced leaf by leaf into shards
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Starts the mean over ranks; everything queued on the device before counts. Called for every
  // bucket of a step, in the same order on all ranks.
  virtual void start(const FullBucket& bucket) = 0;
  // Lets started buckets go on, without waiting.
  virtual void progress() = 0;
  // Is the n-th bucket started since the last finish() complete on this rank?
  virtual bool is_complete(std::size_t n) = 0;
  // Waits for the n-th.
  virtual void wait_for(std::size_t n) = 0;
  // Waits for all started buckets. The squares of this rank's part of the mean gradient are then in
  // `squares`: over all ranks each granule was added exactly once.
  virtual void finish() = 0;

  // The elements of a part of `count` elements whose squares this rank adds.
  virtual Range counts_squares_of(std::int64_t count) const = 0;

  optim::SquareSum& squares() { return squares_; }
  // Tells of each exchanged bucket; nullptr: nobody. Between steps only.
  void observe(StepObserver* observer) { watch_.observe(observer); }

 protected:
  // Makes `count` elements of a sum the mean, and counts their squares.
  void take_mean(Device& device, optim::Vector sum, std::optional<double> scale,
                 std::optional<Dtype> round_to, std::int64_t count) {
    if (scale || round_to) {
      device.scale(sum, scale.value_or(1.0), round_to, count);
    }
    device.add_squares(squares_, {sum.data, sum.dtype}, count);
  }

  optim::SquareSum squares_;
  ExchangeWatch watch_;
};

std::unique_ptr<Exchange> make_single_exchange(Device& device);
// `exposed` counts this thread's time in the group.
std::unique_ptr<Exchange> make_ddp_exchange(Device& device, Group& group, Stopwatch& exposed);
// The mean ends in this rank's shard only, in its place; the other elements keep this rank's sums.
std::unique_ptr<Exchange> make_zero1_exchange(Device& device, Group& group, Stopwatch& exposed);
// The same, or each leaf's mean ends in ShardSums.
std::unique_ptr<Exchange> make_zero2_exchange(Device& device, Group& group, Stopwatch& exposed);

}  // namespace lockstep::parallel
