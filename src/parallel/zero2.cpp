// Stage `zero2` (Rajbhandari et al. 2020, P_os+g): as zero1, and gradients rest in shards too. Each
// leaf's buckets are reduce-scattered from windows (gradient_windows.h) into the shards, which add
// the leaves across first. Accumulated in full instead (no_sync) they travel as in zero1.
#include "parallel/group_exchange.h"

namespace lockstep::parallel {
namespace {

class Zero2Exchange final : public GroupExchange {
 public:
  using GroupExchange::GroupExchange;

 private:
  Work issue(const FullBucket& bucket, const ReduceOptions& options) override {
    if (!bucket.in_shards) {
      return scatter_in_place(bucket, options);
    }
    return bucket.in_shards->sums->width() == GradientWidth::leaf
               ? scatter(bucket, options)
               : scatter_and_add(bucket, options);
  }

  // The only leaf: its mean goes straight to the shards.
  Work scatter(const FullBucket& bucket, const ReduceOptions& options) {
    std::vector<ScatterPart> parts;
    for (std::size_t i = 0; i < bucket.parts.size(); ++i) {
      parts.push_back(
          {bucket.parts[i].data, bucket.in_shards->sums->shard(bucket.in_shards->parts[i]), {}});
    }
    return group().reduce_scatter(std::span<const ScatterPart>(parts), options);
  }

  // Partial sums rest in fp32, unscaled; the last leaf makes the sum the mean.
  Work scatter_and_add(const FullBucket& bucket, const ReduceOptions& options) {
    std::vector<ScatterPart> parts;
    std::vector<std::optional<Dtype>> round_to;
    for (std::size_t i = 0; i < bucket.parts.size(); ++i) {
      Span shown = bucket.in_shards->sums->shard(bucket.in_shards->parts[i]);
      round_to.push_back(shown.dtype == bucket.parts[i].data.dtype
                             ? std::nullopt
                             : std::optional(bucket.parts[i].data.dtype));
      shown.data = nullptr;
      parts.push_back({bucket.parts[i].data, shown, {}});
    }
    ReduceOptions adding = options;
    adding.scale.reset();
    adding.on_reduced = [this, leaf = *bucket.in_shards, scale = options.scale, round_to](
                            std::size_t part, std::int64_t begin, std::int64_t count,
                            const void* values) {
      const std::size_t flat = leaf.parts[part];
      leaf.sums->add(flat, begin, count, values, leaf.leaf, leaf.order);
      if (leaf.last) {
        take_mean(device(), leaf.sums->at(flat, begin), scale, round_to[part], count);
      }
    };
    return group().reduce_scatter(std::span<const ScatterPart>(parts), adding);
  }
};

}  // namespace

std::unique_ptr<Exchange> make_zero2_exchange(Device& device, Group& group, Stopwatch& exposed) {
  return std::make_unique<Zero2Exchange>(device, group, exposed);
}

}  // namespace lockstep::parallel
