// Arithmetic on flat memory: moving gradients, accumulating, scaling, AdamW. Torch-free, one thread
// per call, the same bits on every SIMD target (see comm/reduce_kernels.h for how). Any alignment
// of whole elements and any count ≥ 0; operands are the same range or don't overlap. Dtypes without
// a kernel break an invariant.
#pragma once

#include "lockstep/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace lockstep::optim {

struct ConstVector {
  const void* data = nullptr;
  Dtype dtype = Dtype::f32;
};
struct Vector {
  void* data = nullptr;
  Dtype dtype = Dtype::f32;

  // The elements from `element` on.
  Vector from(std::int64_t element) const {
    return {static_cast<std::byte*>(data) + element * size_of(dtype), dtype};
  }
};

// destination[i] = convert(source[i]); equal float dtypes copy bytes. Pairs: any float to itself,
// bf16/f16 ↔ f32, f32 ↔ f64.
void convert(Vector destination, ConstVector source, std::int64_t count);

// sum[i] += source[i]: sum is f32 (source f32, bf16 or f16) or f64 (source f64).
void accumulate(Vector sum, ConstVector source, std::int64_t count);

// sum[i] = left[i] + right[i] with left f32|f64 and right as for accumulate: one node of the
// reproducible tree. `sum` may be `left`.
void add(Vector sum, ConstVector left, ConstVector right, std::int64_t count);

// values[i] = round(values[i] × factor) in the type of the addition (f64 for f64, else f32); with
// round_to the f32 result is rounded to that float and kept as f32.
void scale(Vector values, double factor, std::optional<Dtype> round_to, std::int64_t count);

// One AdamW step (Loshchilov & Hutter 2019, decoupled decay, as torch::optim::AdamW computes it):
//   p ← p·(1 − lr·wd);  m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;
//   p ← p − (lr / (1−β₁ᵗ)) · m / (√v / √(1−β₂ᵗ) + ε)
// with g = gradient × clip (a second multiplication; clip = 1 changes no bit).
struct AdamWStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  std::int64_t step = 1;  // t, from 1
  float clip = 1.0f;
};

struct AdamWVectors {
  Vector parameter;  // f32, f64 or bf16; written
  float* master =
      nullptr;  // fp32 master, only with a bf16 parameter: updated, then rounded into it
  void* first_moment = nullptr;   // f32 (f64 with an f64 parameter)
  void* second_moment = nullptr;  // the same
  ConstVector gradient;           // f32 or bf16 (f64 with an f64 parameter)
};

void adamw(const AdamWVectors& vectors, const AdamWStep& step, std::int64_t count);

}  // namespace lockstep::optim
