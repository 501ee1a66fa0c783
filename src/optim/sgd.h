// Stochastic gradient descent on flat memory; contract of the vectors as in optim/kernels.h.
#pragma once

#include "optim/kernels.h"

#include <cstdint>

namespace lockstep::optim {

// One step as torch::optim::SGD computes it:
//   d = g + wd·p;  b ← d in the first step, then μ·b + (1−dampening)·d;
//   p ← p − lr·(nesterov ? d + μ·b : b)        (p ← p − lr·d without momentum)
// with g = gradient × clip (a second multiplication; clip = 1 changes no bit).
struct SgdStep {
  double lr = 1e-3;
  double momentum = 0.0;  // μ
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  std::int64_t step = 1;  // from 1: in the first one b is taken as d
  float clip = 1.0f;
};

struct SgdVectors {
  Vector parameter;  // f32, f64 or bf16; written
  float* master =
      nullptr;  // fp32 master, only with a bf16 parameter: updated, then rounded into it
  void* momentum = nullptr;  // b: f32 (f64 with an f64 parameter); not read when μ is 0
  ConstVector gradient;      // f32 or bf16 (f64 with an f64 parameter)
};

void sgd(const SgdVectors& vectors, const SgdStep& step, std::int64_t count);

}  // namespace lockstep::optim
