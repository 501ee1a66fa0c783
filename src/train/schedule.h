// The learning rate of each step. Pure.
#pragma once

#include <cstdint>

namespace lockstep::train {

// Linear warm-up to `peak`, then half a cosine down to a tenth of it (Loshchilov & Hutter 2017).
struct Schedule {
  double peak = 3e-4;
  std::int64_t warmup = 0;  // steps; may exceed `steps`, then the peak is never reached
  std::int64_t steps = 1;   // in total
};

// Steps count from 0: peak·(step+1)/warmup below `warmup`, from there
// peak·(0.1 + 0.45·(1 + cos(π·(step−warmup)/(steps−warmup)))).
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace lockstep::train
