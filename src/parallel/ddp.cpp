// Stage `ddp` (Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel
// Training"): every rank holds everything; each bucket is all-reduced as soon as it is full.
#include "parallel/exchange.h"

namespace lockstep::parallel {
namespace {

class DdpExchange final : public Exchange {
 public:
  DdpExchange(Device& device, Group& group, Stopwatch& exposed)
      : device_(device), group_(group), exposed_(exposed) {}

  void start(const FullBucket& bucket) override {
    ReduceOptions options;
    options.op = ReduceOp::sum;
    options.name = bucket.name;
    options.scale = bucket.scale;
    // Each rank reduces its own range, so the granules are counted once over all ranks.
    options.on_reduced = [this, dtypes = dtypes_of(bucket)](std::size_t part, std::int64_t,
                                                            std::int64_t count,
                                                            const void* values) {
      device_.add_squares(squares_, {values, dtypes.at(part)}, count);
    };
    device_.communication_follows_compute();
    const auto running = exposed_.run();
    works_.push_back(group_.all_reduce(std::span(bucket.parts), options));
  }

  void progress() override {
    const auto running = exposed_.run();
    group_.progress();
  }

  bool is_complete(std::size_t n) override { return n < works_.size() && works_[n].done(); }

  void finish() override {
    const auto running = exposed_.run();
    for (Work& work : works_) {
      device_.compute_follows(work);
    }
    works_.clear();
  }

  Range counts_squares_of(std::int64_t count) const override {
    return block_of(count, group_.size(), group_.rank(), kGranule);
  }

 private:
  static std::vector<Dtype> dtypes_of(const FullBucket& bucket) {
    std::vector<Dtype> dtypes;
    for (const ReducePart& part : bucket.parts) {
      dtypes.push_back(part.data.dtype);
    }
    return dtypes;
  }

  Device& device_;
  Group& group_;
  Stopwatch& exposed_;
  std::vector<Work> works_;
};

}  // namespace

std::unique_ptr<Exchange> make_ddp_exchange(Device& device, Group& group, Stopwatch& exposed) {
  return std::make_unique<DdpExchange>(device, group, exposed);
}

}  // namespace lockstep::parallel
