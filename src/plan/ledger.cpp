#include "base/gradient_window.h"
#include "base/range.h"
#include "comm/windowed.h"
#include "lockstep/plan.h"
#include "plan/flat_buckets.h"

#include <algorithm>
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
  const bool one_copy = shares_parameters(training.stage, training.share_parameters);
  const bool in_shards = updates_shards(training.stage, training.share_parameters);
  std::int64_t largest = 0;  // flat parameter's gradient, as it is sent
  for (const auto& bucket : flat_buckets(parameters, training)) {
    for (const Flat& flat : bucket) {
      const std::int64_t all = flat.layout.size();
      const std::int64_t shard = flat.layout.shard(0).size();
      held.parameters += (one_copy ? shard : all) * size_of(flat.dtype);
      held.gradients += (across_first(training) ? shard : all) * size_of(flat.gradient_dtype) *
                        partial_sums(training);
      held.optimizer += (in_shards ? shard : all) *
                        optimizer_bytes_per_element(flat.dtype, training.optimizer_vectors);
      largest = std::max(largest, all * size_of(flat.sent_dtype));
    }
  }
  held.transient = across_first(training) ? comm::kWindows * gradient_window_bytes(largest) : 0;
  for (const Parameter& parameter : parameters) {
    held.parameters += parameter.trainable ? 0 : parameter.elements * size_of(parameter.dtype);
  }
  return held;
}

std::int64_t buckets(std::span<const Parameter> parameters, const Training& training) {
  const auto planned = static_cast<std::int64_t>(flat_buckets(parameters, training).size());
  if (training.stage == Stage::single) {
    return 0;
  }
  return across_first(training) ? planned * training.micro_batches : planned;
}

}  // namespace lockstep::plan
