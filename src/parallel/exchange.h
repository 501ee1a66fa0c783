// What a stage is: how the gradients of a bucket travel. One small class per stage; buckets, hooks,
// accumulation and the optimizer are shared.
#pragma once

#include "base/range.h"
#include "lockstep/group.h"
#include "optim/norm.h"
#include "parallel/device.h"
#include "parallel/exchange_watch.h"
#include "parallel/stopwatch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::parallel {

// A bucket whose gradients are complete on this rank.
struct FullBucket {
  std::string name;               // in errors and traces
  std::vector<ReducePart> parts;  // one per flat parameter
  std::optional<double> scale;    // 1/M; nothing when M is 1
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
  // Waits for all started buckets. The squares of this rank's part of the mean gradient are then in
  // `squares`: over all ranks each granule was added exactly once.
  virtual void finish() = 0;

  // The elements of a part of `count` elements whose squares this rank adds.
  virtual Range counts_squares_of(std::int64_t count) const = 0;

  optim::SquareSum& squares() { return squares_; }
  // Tells of each exchanged bucket; nullptr: nobody. Between steps only.
  void observe(StepObserver* observer) { watch_.observe(observer); }

 protected:
  optim::SquareSum squares_;
  ExchangeWatch watch_;
};

std::unique_ptr<Exchange> make_single_exchange(Device& device);
// `exposed` counts this thread's time in the group.
std::unique_ptr<Exchange> make_ddp_exchange(Device& device, Group& group, Stopwatch& exposed);

}  // namespace lockstep::parallel
