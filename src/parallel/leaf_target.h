// Where a collector puts the gradients of a leaf.
#pragma once

#include "lockstep/group.h"

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>

namespace lockstep::parallel {

class LeafTarget {
 public:
  virtual ~LeafTarget() = default;

  // Takes leaf `leaf` (from 0) of a member; `first`: the first of this step.
  virtual void put(std::size_t part, std::size_t member, std::int64_t leaf, bool first,
                   const at::Tensor& gradient) = 0;
  // Makes the member's gradient zero: nothing was put.
  virtual void clear(std::size_t part, std::size_t member) = 0;
  // What travels of a flat parameter.
  virtual const SymmetricSpan& span(std::size_t part) const = 0;
};

}  // namespace lockstep::parallel
