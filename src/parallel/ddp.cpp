// Stage `ddp` (Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel
// Training"): every rank holds everything; each bucket is all-reduced as soon as it is full.
#include "parallel/group_exchange.h"

namespace lockstep::parallel {
namespace {

class DdpExchange final : public GroupExchange {
 public:
  using GroupExchange::GroupExchange;

 private:
  Work issue(const FullBucket& bucket, const ReduceOptions& options) override {
    return group().all_reduce(std::span(bucket.parts), options);
  }
};

}  // namespace

std::unique_ptr<Exchange> make_ddp_exchange(Device& device, Group& group, Stopwatch& exposed) {
  return std::make_unique<DdpExchange>(device, group, exposed);
}

}  // namespace lockstep::parallel
