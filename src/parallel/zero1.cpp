// Stage `zero1` (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models", P_os): each rank keeps masters and optimizer state of its shards only. Each
// bucket is reduce-scattered as soon as it is full; what the ranks update is then gathered
// (updated_values.h), so that as many bytes move as in ddp.
#include "parallel/group_exchange.h"

namespace lockstep::parallel {
namespace {

class Zero1Exchange final : public GroupExchange {
 public:
  using GroupExchange::GroupExchange;

 private:
  Work issue(const FullBucket& bucket, const ReduceOptions& options) override {
    return scatter_in_place(bucket, options);
  }
};

}  // namespace

std::unique_ptr<Exchange> make_zero1_exchange(Device& device, Group& group, Stopwatch& exposed) {
  return std::make_unique<Zero1Exchange>(device, group, exposed);
}

}  // namespace lockstep::parallel
