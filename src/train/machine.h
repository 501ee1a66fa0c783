// The machine a run happened on, as reports record it.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

// The processor's name as the kernel gives it; "unknown" where it does not.
std::string cpu_name();

// Processors this process may run on.
int available_cores();

// How this process was started, as the user would type it ("lockstep train --steps 20").
std::string command_line();

// Floating-point operations per second of this rank's threads in LibTorch's matrix products, in
// bf16 or f32: the best of several within about `limit_ms`.
struct MatmulProbe {
  bool bf16 = false;
  double limit_ms = 250;
};
double matmul_peak(const MatmulProbe& probe);

}  // namespace lockstep::train
