// Through what gradients travel that rest in shards (zero2, zero3): two windows of symmetric
// memory, of a few MB however large a bucket is. A leaf's gradients are copied into them piece by
// piece from where LibTorch left them (comm/windowed.h).
#pragma once

#include "base/range.h"
#include "lockstep/group.h"
#include "parallel/device.h"
#include "parallel/flat_parameter.h"

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::parallel {

// One leaf's gradients of a flat parameter, per member: of its shape, or undefined where there is
// none.
struct LeafOfPart {
  std::size_t part = 0;  // its number among all flat parameters
  std::vector<at::Tensor> members = {};
};

class GradientWindows {
 public:
  // Collective. All references must outlive the windows.
  GradientWindows(Device& device, Group& group, const std::vector<FlatParameter*>& parts);

  const SymmetricMemory& memory() const { return memory_; }
  std::size_t parts() const { return parts_.size(); }
  std::int64_t bytes() const { return memory_.bytes(); }

  const FlatParameter& part(const LeafOfPart& leaf) const { return *parts_.at(leaf.part); }
  // Copies elements [begin, end) of the flat parameter that `leaf` is of to `to`, in its dtype:
  // zeros between members and where there is no gradient.
  void lay(const LeafOfPart& leaf, Range elements, void* to) const;

 private:
  Device& device_;
  std::vector<const FlatParameter*> parts_;
  SymmetricMemory memory_;
};

}  // namespace lockstep::parallel
