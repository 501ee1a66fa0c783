// Stage `zero2` (Rajbhandari et al. 2020, P_os+g): as zero1, and gradients rest in shards too. Each
// leaf's buckets are reduce-scattered through windows (gradient_windows.h) into the shards, which
// add the leaves across first. Accumulated in full instead (no_sync) they travel as in zero1.
#include "comm/windowed.h"
#include "parallel/group_exchange.h"

#include <utility>

namespace lockstep::parallel {
namespace {

class Zero2Exchange final : public GroupExchange {
 public:
  using GroupExchange::GroupExchange;

 private:
  Work issue(const FullBucket& bucket, const ReduceOptions& options) override {
    if (!bucket.leaf) {
      return scatter_in_place(bucket, options);
    }
    return bucket.leaf->sums->width() == GradientWidth::leaf
               ? scatter(*bucket.leaf, options)
               : scatter_and_add(*bucket.leaf, options);
  }

  static comm::WindowedPart part_of(const LeafOfBucket& leaf, std::size_t i, const Span& output) {
    const FlatParameter& part = leaf.windows->part(leaf.parts[i]);
    return {part.layout().size(), part.dtype(),
            [windows = leaf.windows, part_leaf = leaf.parts[i]](Range elements, void* to) {
              windows->lay(part_leaf, elements, to);
            },
            output};
  }

  // The only leaf: its mean goes straight to the shards.
  static Work scatter(const LeafOfBucket& leaf, const ReduceOptions& options) {
    std::vector<comm::WindowedPart> parts;
    for (std::size_t i = 0; i < leaf.parts.size(); ++i) {
      parts.push_back(part_of(leaf, i, leaf.sums->shard(leaf.parts[i].part)));
    }
    return comm::reduce_scatter_through(leaf.windows->memory(), std::move(parts), options);
  }

  // Partial sums rest in fp32, unscaled; the last leaf makes the sum the mean.
  Work scatter_and_add(const LeafOfBucket& leaf, const ReduceOptions& options) {
    std::vector<comm::WindowedPart> parts;
    std::vector<std::size_t> flats;
    std::vector<std::optional<Dtype>> round_to;
    for (std::size_t i = 0; i < leaf.parts.size(); ++i) {
      Span shown = leaf.sums->shard(leaf.parts[i].part);
      shown.data = nullptr;
      parts.push_back(part_of(leaf, i, shown));
      flats.push_back(leaf.parts[i].part);
      const Dtype held = parts.back().dtype;
      round_to.push_back(shown.dtype == held ? std::nullopt : std::optional(held));
    }
    ReduceOptions adding = options;
    adding.scale.reset();
    adding.on_reduced = [this, sums = leaf.sums, number = leaf.number, order = leaf.order,
                         last = leaf.last, scale = options.scale, flats,
                         round_to](std::size_t part, std::int64_t begin, std::int64_t count,
                                   const void* values) {
      const std::size_t flat = flats[part];
      sums->add(flat, begin, count, values, number, order);
      if (last) {
        take_mean(device(), sums->at(flat, begin), scale, round_to[part], count);
      }
    };
    return comm::reduce_scatter_through(leaf.windows->memory(), std::move(parts), adding);
  }
};

}  // namespace

std::unique_ptr<Exchange> make_zero2_exchange(Device& device, Group& group, Stopwatch& exposed) {
  return std::make_unique<Zero2Exchange>(device, group, exposed);
}

}  // namespace lockstep::parallel
