// Stage `single`: one rank, nothing travels; the mean over the micro-batches is taken in place.
#include "parallel/exchange.h"

namespace lockstep::parallel {
namespace {

class SingleExchange final : public Exchange {
 public:
  explicit SingleExchange(Device& device) : device_(device) {}

  void start(const FullBucket& bucket) override {
    for (const ReducePart& part : bucket.parts) {
      take_means(part, bucket.scale);
    }
    ++started_;
  }

  void progress() override {}
  bool is_complete(std::size_t n) override { return n < started_; }
  void wait_for(std::size_t) override {}
  void finish() override { started_ = 0; }

  Range counts_squares_of(std::int64_t count) const override { return {0, count}; }

 private:
  void take_means(const ReducePart& part, std::optional<double> scale) {
    // Small enough that the squares find the scaled values still in the cache.
    constexpr std::int64_t kChunk = 64 * 1024;
    const optim::Vector all{part.data.data(), part.data.dtype};
    for (std::int64_t begin = 0; begin < part.data.count; begin += kChunk) {
      take_mean(device_, all.from(begin), scale, part.round_to,
                std::min(kChunk, part.data.count - begin));
    }
  }

  Device& device_;
  std::size_t started_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_single_exchange(Device& device) {
  return std::make_unique<SingleExchange>(device);
}

}  // namespace lockstep::parallel
