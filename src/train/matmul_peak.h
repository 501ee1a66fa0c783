// What the processors reach in matrix products: the yardstick of MFU (Chowdhery et al. 2022,
// "PaLM", appendix B), measured and not from a data sheet.
#pragma once

#include "lockstep/group.h"

namespace lockstep::train {

struct MatmulProbe {
  bool bf16 = false;
  int windows = 5;
  double window_ms = 50;
};

// Collective. Floating-point operations per second of all ranks of `group` together in LibTorch's
// matrix products, all multiplying at once with the threads that they have now, so that they share
// the cores as in training: the best of several windows. The same value on every rank.
double matmul_peak(Group& group, const MatmulProbe& probe);

}  // namespace lockstep::train
