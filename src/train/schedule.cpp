#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::train {

double learning_rate(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup) {
    return schedule.peak * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
  }
  const auto falling =
      static_cast<double>(std::max<std::int64_t>(1, schedule.steps - schedule.warmup));
  const double progress = std::min(1.0, static_cast<double>(step - schedule.warmup) / falling);
  return schedule.peak * (0.1 + 0.45 * (1.0 + std::cos(std::numbers::pi * progress)));
}

}  // namespace lockstep::train
