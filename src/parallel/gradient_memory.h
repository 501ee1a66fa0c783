// Where the gradients of all buckets live: one piece of symmetric memory that peers read in place.
//
// With one micro-batch a step it holds leaves in the gradients' own dtype. As soon as micro-batches
// accumulate, 16-bit gradients need fp32 there: only leaves travel in their dtype, partial sums in
// fp32.
#pragma once

#include "lockstep/group.h"
#include "parallel/device.h"
#include "parallel/flat_parameter.h"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace lockstep::parallel {

enum class GradientWidth : std::uint8_t { leaf, accumulating };

// What a parameter's gradient rests in.
Dtype gradient_dtype(Dtype held, GradientWidth width);

class GradientMemory {
 public:
  // Collective. `parts`: all flat parameters in bucket order.
  GradientMemory(Group& group, const std::vector<FlatParameter*>& parts, GradientWidth width);

  GradientWidth width() const { return width_; }
  std::size_t parts() const { return parts_.size(); }
  const SymmetricSpan& span(std::size_t part) const { return spans_.at(part); }
  // Member i of a part: where its gradient lies, and a tensor [member's shape] on it.
  optim::Vector values(std::size_t part, std::size_t member) const;
  const at::Tensor& view(std::size_t part, std::size_t member) const {
    return views_.at(part).at(member);
  }
  // Grows whenever somebody writes to a view of the part through LibTorch.
  std::uint32_t version(std::size_t part) const { return flats_.at(part)._version(); }
  std::int64_t bytes() const { return memory_.bytes(); }

 private:
  GradientWidth width_;
  SymmetricMemory memory_;
  std::vector<SymmetricSpan> spans_;
  std::vector<at::Tensor> flats_;               // one per part, [layout.size()]
  std::vector<std::vector<at::Tensor>> views_;  // [part][member]
  std::vector<const FlatParameter*> parts_;
};

}  // namespace lockstep::parallel
