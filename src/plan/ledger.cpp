#include "base/range.h"
#include "lockstep/plan.h"
#include "plan/flat_buckets.h"

#include <bit>

namespace lockstep::plan {
namespace {

// Partial sums that hold a rank's gradient while its leaves add up.
std::int64_t partial_sums(const Training& training) {
  if (!training.reproducible || training.micro_batches == 1) {
    return 1;
  }
  return std::bit_width(static_cast<std::uint64_t>(training.micro_batches)) - 1;
}

// The optimizer's vectors, and an fp32 master of what is held in 16 bits.
std::int64_t optimizer_bytes_per_element(Dtype dtype, int vectors) {
  const std::int64_t value = dtype == Dtype::f64 ? size_of(Dtype::f64) : size_of(Dtype::f32);
  const std::int64_t master = size_of(dtype) == 2 ? size_of(Dtype::f32) : 0;
  return vectors * value + master;
}

}  // namespace

Ledger ledger(std::span<const Parameter> parameters, const Training& training) {
  Ledger held;
  for (const auto& bucket : flat_buckets(parameters, training)) {
    for (const Flat& flat : bucket) {
      const std::int64_t elements = flat.layout.size();
      held.parameters += elements * size_of(flat.dtype);
      held.gradients += elements * size_of(flat.gradient_dtype) * partial_sums(training);
      held.optimizer +=
          elements * optimizer_bytes_per_element(flat.dtype, training.optimizer_vectors);
    }
  }
  for (const Parameter& parameter : parameters) {
    held.parameters += parameter.trainable ? 0 : parameter.elements * size_of(parameter.dtype);
  }
  return held;
}

std::int64_t buckets(std::span<const Parameter> parameters, const Training& training) {
  const auto planned = flat_buckets(parameters, training);
  return training.stage == Stage::single ? 0 : static_cast<std::int64_t>(planned.size());
}

}  // namespace lockstep::plan
