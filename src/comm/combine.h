// Adds what a rank has of a block, leaves and partial sums mixed, in the type of the addition.
#pragma once

#include "comm/reduction.h"
#include "comm/schedule.h"
#include "lockstep/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::comm {

// What partial results of `op` travel and rest as: fp32 for sums of 16-bit floats, else `dtype`.
Dtype partial_dtype(Dtype dtype, ReduceOp op);

class Combiner {
 public:
  // `result`: dtype, or f32 to keep the sums of 16-bit elements. `reduction.round_to` is that of
  // these elements.
  Combiner(Dtype dtype, Dtype result, const Reduction& reduction);

  struct Operand {
    const std::byte* data = nullptr;
    Form form = Form::leaf;  // leaf or partial
  };
  // The tree over the operands, in their order, of `count` elements each. A result is scaled and
  // rounded. `to` may be the operand of its own dtype.
  void combine(std::span<const Operand> operands, std::byte* to, Form into, std::int64_t count);

  Dtype dtype_of(Form form) const;

 private:
  bool mixed(std::span<const Operand> operands) const;
  const std::byte* widened(const Operand& operand, std::size_t index, std::int64_t count);

  Dtype leaf_;
  Dtype partial_;
  Dtype result_;
  Reduction reduction_;
  std::vector<std::vector<float>> widened_;  // leaves that meet partial sums, per operand
};

}  // namespace lockstep::comm
