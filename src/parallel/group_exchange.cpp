#include "parallel/group_exchange.h"

namespace lockstep::parallel {
namespace {

struct PartSize {
  Dtype dtype;
  std::int64_t count;
};

std::vector<PartSize> sizes_of(const FullBucket& bucket) {
  std::vector<PartSize> sizes;
  for (const ReducePart& part : bucket.parts) {
    sizes.push_back({part.data.dtype, part.data.count});
  }
  if (bucket.leaf) {
    for (const LeafOfPart& leaf : bucket.leaf->parts) {
      const FlatParameter& part = bucket.leaf->windows->part(leaf);
      sizes.push_back({part.dtype(), part.layout().size()});
    }
  }
  return sizes;
}

std::int64_t bytes_of(const std::vector<PartSize>& parts) {
  std::int64_t bytes = 0;
  for (const PartSize& part : parts) {
    bytes += part.count * size_of(part.dtype);
  }
  return bytes;
}

}  // namespace

void GroupExchange::start(const FullBucket& bucket) {
  ReduceOptions options;
  options.op = ReduceOp::sum;
  options.name = bucket.name;
  options.scale = bucket.scale;
  const std::vector<PartSize> parts = sizes_of(bucket);
  options.on_reduced = [this, parts](std::size_t part, std::int64_t, std::int64_t count,
                                     const void* values) {
    device_.add_squares(squares_, {values, parts.at(part).dtype}, count);
  };
  device_.communication_follows_compute();
  const auto running = exposed_.run();
  watch_.started(bucket.name, bytes_of(parts));
  works_.push_back(issue(bucket, options));
}

Work GroupExchange::scatter_in_place(const FullBucket& bucket, const ReduceOptions& options) {
  std::vector<ScatterPart> parts;
  for (const ReducePart& part : bucket.parts) {
    const Range shard = block_of(part.data.count, group_.size(), group_.rank());
    parts.push_back({part.data, part.data.subspan(shard.begin, shard.end).local(), part.round_to});
  }
  return group_.reduce_scatter(std::span<const ScatterPart>(parts), options);
}

void GroupExchange::progress() {
  const auto running = exposed_.run();
  group_.progress();
  watch_.look([this](std::size_t n) { return is_complete(n); });
}

void GroupExchange::wait_for(std::size_t n) {
  const auto running = exposed_.run();
  device_.compute_follows(works_.at(n));
}

void GroupExchange::finish() {
  const auto running = exposed_.run();
  for (std::size_t n = 0; n < works_.size(); ++n) {
    device_.compute_follows(works_[n]);
    watch_.look([n](std::size_t other) { return other <= n; });
  }
  watch_.finish();
  works_.clear();
}

}  // namespace lockstep::parallel
