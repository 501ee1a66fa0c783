// The arithmetic of collectives on elements that this process can read in place: the summation
// tree over any number of inputs, one scaling, one rounding. Every SIMD target and every tail gives
// the same bits (no fused multiply-add; bf16 and f16 rounding by integer arithmetic; a NaN result
// is the one canonical quiet NaN).
#pragma once

#include "lockstep/dtype.h"
#include "lockstep/group.h"

#include <cstdint>
#include <optional>
#include <span>

namespace lockstep::comm {

struct ReduceTask {
  // One per rank, in rank order, `count` elements each.
  std::span<const void* const> sources;
  // Each gets the result; may equal a source, not overlap it partly.
  std::span<void* const> destinations;
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
  // mean is sum with scale = 1/P, set by the caller. For max and min a NaN in any source gives NaN,
  // and of equal values the earlier source's bits stay. Sums of integers wrap.
  ReduceOp op = ReduceOp::sum;
  std::optional<double> scale = {};    // floats only
  std::optional<Dtype> round_to = {};  // f32 only: bf16 or f16
  // The destinations are f32 and get the sums as they are: bf16 and f16 only, and none of them a
  // source.
  bool widen = false;
  // The destinations are of this 16-bit type, the sources f32; none of them is a source.
  std::optional<Dtype> narrow_to = {};
};

// Elements are aligned to their size at least. Works for any number of sources ≥ 1.
void reduce(const ReduceTask& task);

// The Highway target in use ("AVX3_ZEN4", …), for reports.
const char* simd_target();

}  // namespace lockstep::comm
