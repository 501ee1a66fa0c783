// Sees where the time of a step goes, span by span; what `lockstep train --trace` draws.
//
//   parallel.observe(&observer);    // from now on
//   … a step …
//   parallel.observe(nullptr);      // costs nothing again
//
// Calls come on the training thread, within the call that the span belongs to. Times are those of
// std::chrono::steady_clock, which on Linux is one clock for all processes of a host.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace lockstep {

struct TimeSpan {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

// One bucket's gradients on their way between the ranks.
struct ExchangeSpan {
  std::string_view name;   // of the bucket; valid during the call
  std::int64_t bytes = 0;  // of this rank's gradients in it
  TimeSpan time;           // from its start to when this rank saw that it was complete
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // A bucket is complete on this rank. Several may be on their way at once.
  virtual void exchanged(const ExchangeSpan& span) = 0;
  // The training thread spent this time in collectives and waits. Spans neither nest nor overlap.
  virtual void exposed(TimeSpan time) = 0;
};

}  // namespace lockstep
