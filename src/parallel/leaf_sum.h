// How one rank adds the leaves of its micro-batches: as a running sum, or (reproducible) as the
// summation tree, so that k micro-batches here equal k more ranks elsewhere bit for bit.
#pragma once

#include "parallel/device.h"
#include "parallel/flat_parameter.h"
#include "parallel/gradient_memory.h"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace lockstep::parallel {

enum class LeafOrder : std::uint8_t { running, tree };

class LeafSum {
 public:
  // All references must outlive the sum. Sums end in `gradients`.
  LeafSum(Device& device, const std::vector<FlatParameter*>& parts, GradientMemory& gradients);

  // Before the first put of a step.
  void begin(LeafOrder order) { order_ = order; }
  // Adds leaf `leaf` (from 0) of a member. In running order `first` says that nothing was added in
  // this step yet; in tree order every leaf must be put once, in order (zeros when absent).
  void put(std::size_t part, std::size_t member, std::int64_t leaf, bool first,
           const at::Tensor& gradient);
  // Makes the member's sum zero: nothing was put in this step.
  void clear(std::size_t part, std::size_t member);

  // Bytes of partial sums beyond the gradients themselves.
  std::int64_t bytes() const;

 private:
  void put_running(optim::Vector sum, bool first, const at::Tensor& gradient);
  void put_in_tree(std::size_t part, std::size_t member, std::int64_t leaf,
                   const at::Tensor& gradient);
  // Partial sum `depth` of a member; depth 0 is the gradient memory itself.
  optim::Vector partial(std::size_t part, std::size_t member, std::size_t depth);

  Device& device_;
  const std::vector<FlatParameter*>& parts_;
  GradientMemory& gradients_;
  LeafOrder order_ = LeafOrder::running;
  std::vector<std::vector<at::Tensor>> deeper_;  // [depth − 1][part], flat
};

}  // namespace lockstep::parallel
