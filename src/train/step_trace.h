// Records where one rank's time goes, for a trace: LibTorch's operators, the parts of a step, and
// what an observed Parallel tells.
#pragma once

#include "lockstep/group.h"
#include "lockstep/step_observer.h"
#include "train/trace_events.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::train {

class StepTrace final : public StepObserver {
 public:
  // Records the operators of this thread (its backward included) until stop(); each costs about a
  // quarter of a microsecond meanwhile. One at a time per thread.
  StepTrace();
  ~StepTrace() override;
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  void stop();
  // A part of a step, which holds the operators within its time.
  void part(std::string name, TimeSpan time);
  void exchanged(const ExchangeSpan& span) override;
  void exposed(TimeSpan time) override;

  const RankTrace& spans() const { return spans_; }

 private:
  std::uint64_t callback_ = 0;  // LibTorch's handle; 0: stopped
  RankTrace spans_;
};

// A moment as traces count it.
std::int64_t nanoseconds(std::chrono::steady_clock::time_point time);

// Collective: the trace of all ranks as a file's text, on rank 0; empty on the others.
std::string gather_trace(Group& group, const RankTrace& mine);

}  // namespace lockstep::train
