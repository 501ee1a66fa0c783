#include "train/traced_steps.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep::train {
namespace {

const char* part_before(Moment moment) {
  switch (moment) {
    case Moment::after_forward:
      return "forward";
    case Moment::after_backward:
      return "backward";
    default:
      return "update";
  }
}

}  // namespace

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
    trace_->part(part_before(moment), {part_begin_, now});
  }
  part_begin_ = now;
}

bool TracedSteps::end(std::int64_t step) {
  if (!std::exchange(in_step_, false)) {
    return false;
  }
  const auto now = Clock::now();
  trace_->part("step " + std::to_string(step), {step_begin_, now});
  if (step + 1 < window_.end) {
    return false;
  }
  parallel_.observe(nullptr);
  trace_->stop();
  return true;
}

void TracedSteps::memory(const MemorySample& sample) {
  if (window_.begin == window_.end) {
    return;
  }
  const std::int64_t now_ns = nanoseconds(Clock::now());
  counters_.push_back({"memory",
                       now_ns,
                       {{"parameters", sample.held.parameters},
                        {"gradients", sample.held.gradients},
                        {"optimizer", sample.held.optimizer},
                        {"transient", sample.held.transient},
                        {"activations", sample.activations}}});
  if (sample.resident) {
    counters_.push_back({"resident", now_ns, {{"pss", *sample.resident}}});
  }
}

RankTrace TracedSteps::spans() const {
  RankTrace spans = trace_ ? trace_->spans() : RankTrace();
  spans.counters = counters_;
  return spans;
}

}  // namespace lockstep::train
