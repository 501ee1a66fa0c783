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
  Dtype gradient_dtype;  // of what is held and sent: a wider sum when micro-batches accumulate
  FlatLayout layout;
};

// Per bucket, in the order they fill in backward, one Flat per dtype.
using FlatBuckets = std::vector<std::vector<Flat>>;

// Throws UsageError for what plan.h refuses.
FlatBuckets flat_buckets(std::span<const Parameter> parameters, const Training& training);

}  // namespace lockstep::plan
