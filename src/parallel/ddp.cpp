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
    watch_.started(bucket.name, bytes_of(bucket));
    works_.push_back(group_.all_reduce(std::span(bucket.parts), options));
  }

  void progress() override {
    const auto running = exposed_.run();
    group_.progress();
    watch_.look([this](std::size_t n) { return is_complete(n); });
  }

  bool is_complete(std::size_t n) override { return n < works_.size() && works_[n].done(); }

  void finish() override {
    const auto running = exposed_.run();
    for (std::size_t n = 0; n < works_.size(); ++n) {
      device_.compute_follows(works_[n]);
      watch_.look([n](std::size_t other) { return other <= n; });
    }
    watch_.finish();
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
  static std::int64_t bytes_of(const FullBucket& bucket) {
    std::int64_t bytes = 0;
    for (const ReducePart& part : bucket.parts) {
      bytes += part.data.bytes();
    }
    return bytes;
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
