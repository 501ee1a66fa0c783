// One rank's sum of the leaves of its micro-batches (local first), in full gradient memory.
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

class LeafSum {
 public:
  // All references must outlive the sum. Sums end in `gradients`.
  LeafSum(Device& device, const std::vector<FlatParameter*>& parts, GradientMemory& gradients);

  // Before the first put of a step.
  void begin(LeafOrder order) { order_ = order; }
  // Takes leaf `leaf` (from 0) of a member; `first`: the first of this step. In tree order every
  // leaf must be put once, in order (zeros when absent).
  void put(std::size_t part, std::size_t member, std::int64_t leaf, bool first,
           const at::Tensor& gradient);
  // Makes the member's gradient zero: nothing was put.
  void clear(std::size_t part, std::size_t member);
  // What travels of a flat parameter.
  const SymmetricSpan& span(std::size_t part) const { return gradients_.span(part); }

  // Bytes of partial sums beyond the gradients themselves.
  std::int64_t bytes() const { return partial_sums_.bytes(); }

 private:
  void put_running(optim::Vector sum, bool first, const at::Tensor& gradient);

  Device& device_;
  const std::vector<FlatParameter*>& parts_;
  GradientMemory& gradients_;
  LeafOrder order_ = LeafOrder::running;
  PartialSums partial_sums_;
};

}  // namespace lockstep::parallel
