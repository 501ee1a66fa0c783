#include "train/traced_steps.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep::train {

TraceWindow trace_window(std::int64_t first, std::int64_t steps) {
  constexpr std::int64_t kSettingUp = 2;
  constexpr std::int64_t kTraced = 4;
  const std::int64_t begin = std::min(first + kSettingUp, std::max(first, steps - 1));
  return {begin, std::max(begin, std::min(begin + kTraced, steps))};
}

void TracedSteps::begin(std::int64_t step) {
  if (!records(step)) {
    return;
  }
  if (!trace_) {
    trace_.emplace();
    parallel_.observe(&*trace_);
  }
  in_step_ = true;
  step_begin_ = part_begin_ = Clock::now();
}

// A part lasts from the moment before it.
void TracedSteps::at(Moment moment) {
  if (!in_step_) {
    return;
  }
  const auto now = Clock::now();
  if (moment != Moment::before_forward) {
    trace_->part(moment == Moment::after_forward ? "forward" : "backward", {part_begin_, now});
  }
  part_begin_ = now;
}

bool TracedSteps::end(std::int64_t step) {
  if (!std::exchange(in_step_, false)) {
    return false;
  }
  const auto now = Clock::now();
  trace_->part("update", {part_begin_, now});
  trace_->part("step " + std::to_string(step), {step_begin_, now});
  if (step + 1 < window_.end) {
    return false;
  }
  parallel_.observe(nullptr);
  trace_->stop();
  return true;
}

const RankTrace& TracedSteps::spans() const {
  static const RankTrace kNothing;
  return trace_ ? trace_->spans() : kNothing;
}

}  // namespace lockstep::train
