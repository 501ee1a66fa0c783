// The flat parameters that a model's trainable parameters form: the same arithmetic as the engine's
// (base/bucket_plan.h, base/flat_layout.h), from sizes alone. Pure.
#pragma once

#include "base/flat_layout.h"
#include "lockstep/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::plan {

// Members of one dtype in one bucket.
struct Flat {
  Dtype dtype;           // of the parameters
  Dtype gradient_dtype;  // of what is held: a wider sum when micro-batches accumulate
  Dtype sent_dtype;      // of what is sent: that sum, or each leaf as it is
  FlatLayout layout;
};

// Per bucket, in the order they fill in backward, one Flat per dtype.
using FlatBuckets = std::vector<std::vector<Flat>>;

// Do gradients travel leaf by leaf, and add up in shards?
inline bool across_first(const Training& training) {
  return shards_gradients(training.stage) &&
         (training.micro_batches == 1 || training.accumulate_in_shard);
}

// Throws UsageError for what plan.h refuses.
FlatBuckets flat_buckets(std::span<const Parameter> parameters, const Training& training);

}  // namespace lockstep::plan
