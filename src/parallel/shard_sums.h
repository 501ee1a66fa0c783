// This rank's shards of the mean gradient (zero2): each leaf is reduced over the ranks first, what
// it comes to is added here, and the sum is scaled and rounded once.
#pragma once

#include "parallel/device.h"
#include "parallel/flat_parameter.h"
#include "parallel/gradient_memory.h"
#include "parallel/leaf_order.h"
#include "parallel/partial_sums.h"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace lockstep::parallel {

class ShardSums {
 public:
  // All references must outlive the sums. A single leaf rests in the gradients' own dtype; sums of
  // several 16-bit ones in fp32.
  ShardSums(Device& device, const std::vector<FlatParameter*>& parts, GradientWidth width);

  GradientWidth width() const { return width_; }
  std::size_t parts() const { return sums_.size(); }
  // This rank's shard of a flat parameter.
  Span shard(std::size_t part) const;
  // Elements from `element` of the flat parameter on, which lie in the shard.
  optim::Vector at(std::size_t part, std::int64_t element) const;
  // [kept elements of the member]: a view.
  at::Tensor kept(std::size_t part, std::size_t member) const;
  // Adds leaf `leaf` (from 0, all in order): `values` in the shard's dtype, of `count` elements
  // from `element` on. They are not needed any more when it returns.
  void add(std::size_t part, std::int64_t element, std::int64_t count, const void* values,
           std::int64_t leaf, LeafOrder order);

  // Grows whenever somebody writes to a view of the part through LibTorch.
  std::uint32_t version(std::size_t part) const { return sums_.at(part)._version(); }
  std::int64_t bytes() const;

 private:
  std::vector<at::Tensor> make_sums() const;
  std::vector<Span> shards() const;

  Device& device_;
  const std::vector<FlatParameter*>& parts_;
  GradientWidth width_;
  std::vector<at::Tensor> sums_;  // per part, [kept().size()]
  PartialSums partial_sums_;      // that end there
};

}  // namespace lockstep::parallel
