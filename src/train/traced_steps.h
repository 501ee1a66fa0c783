// Which steps of a run are traced, and what of them is recorded.
#pragma once

#include "lockstep/parallel.h"
#include "train/memory.h"
#include "train/moment.h"
#include "train/step_trace.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::train {

// Steps [begin, end).
struct TraceWindow {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Four steps that begin after the two that set things up and sample memory, or as many as there
// are: a trace of a whole run would be too big to open. The run does steps [first, steps).
TraceWindow trace_window(std::int64_t first, std::int64_t steps);

// Follows a run's steps on one rank and records those of the window.
class TracedSteps {
 public:
  // `parallel` must outlive it.
  TracedSteps(TraceWindow window, Parallel& parallel) : window_(window), parallel_(parallel) {}
  ~TracedSteps() { parallel_.observe(nullptr); }
  TracedSteps(const TracedSteps&) = delete;
  TracedSteps& operator=(const TracedSteps&) = delete;

  // Around each step, in this order.
  void begin(std::int64_t step);
  void at(Moment moment);
  // What is held now, to be drawn; in a step of the window or before it.
  void memory(const MemorySample& sample);
  // Between begin() and end() of a step that is recorded.
  bool in_step() const { return in_step_; }
  // True when the window has just been completed.
  bool end(std::int64_t step);

  // What has been recorded.
  RankTrace spans() const;

 private:
  using Clock = std::chrono::steady_clock;
  bool records(std::int64_t step) const { return step >= window_.begin && step < window_.end; }

  TraceWindow window_;
  Parallel& parallel_;
  std::optional<StepTrace> trace_;
  std::vector<TraceCounter> counters_;
  bool in_step_ = false;  // a recorded one
  Clock::time_point step_begin_;
  Clock::time_point part_begin_;
};

}  // namespace lockstep::train
