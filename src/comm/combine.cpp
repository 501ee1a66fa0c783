#include "comm/combine.h"

#include "comm/reduce_kernels.h"

#include <algorithm>
#include <array>

namespace lockstep::comm {

Dtype partial_dtype(Dtype dtype, ReduceOp op) {
  const bool half = is_floating(dtype) && size_of(dtype) == 2;
  return half && op == ReduceOp::sum ? Dtype::f32 : dtype;
}

Combiner::Combiner(Dtype dtype, Dtype result, const Reduction& reduction)
    : leaf_(dtype),
      partial_(partial_dtype(dtype, reduction.op)),
      result_(result),
      reduction_(reduction) {}

Dtype Combiner::dtype_of(Form form) const {
  switch (form) {
    case Form::leaf:
      return leaf_;
    case Form::partial:
      return partial_;
    case Form::result:
      return result_;
  }
  return leaf_;
}

bool Combiner::mixed(std::span<const Operand> operands) const {
  return leaf_ != partial_ && std::ranges::any_of(operands, [&](const Operand& operand) {
           return operand.form != operands.front().form;
         });
}

const std::byte* Combiner::widened(const Operand& operand, std::size_t index, std::int64_t count) {
  widened_.resize(std::max(widened_.size(), index + 1));
  std::vector<float>& values = widened_[index];
  values.resize(std::max(values.size(), static_cast<std::size_t>(count)));
  const std::array<const void*, 1> source{operand.data};
  const std::array<void*, 1> destination{values.data()};
  ReduceTask task;
  task.sources = source;
  task.destinations = destination;
  task.count = count;
  task.dtype = leaf_;
  task.widen = true;
  reduce(task);
  return reinterpret_cast<const std::byte*>(values.data());
}

void Combiner::combine(std::span<const Operand> operands, std::byte* to, Form into,
                       std::int64_t count) {
  const bool widens = mixed(operands);
  std::vector<const void*> sources;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    sources.push_back(widens && operand.form == Form::leaf ? widened(operand, i, count)
                                                           : operand.data);
  }
  const std::array<void*, 1> destination{to};
  ReduceTask task;
  task.sources = sources;
  task.destinations = destination;
  task.count = count;
  task.dtype = widens ? partial_ : dtype_of(operands.front().form);
  task.op = reduction_.op;
  const Dtype target = dtype_of(into);
  task.widen = size_of(target) > size_of(task.dtype);
  if (size_of(target) < size_of(task.dtype)) {
    task.narrow_to = target;
  }
  if (into == Form::result) {
    task.scale = reduction_.scale;
    task.round_to = reduction_.round_to;
  }
  reduce(task);
}

}  // namespace lockstep::comm
