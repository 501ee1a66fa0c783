// Adds up the time a thread spends in some of its work (exposed communication).
#pragma once

#include "lockstep/step_observer.h"

#include <chrono>

namespace lockstep::parallel {

class Stopwatch {
 public:
  class Running {
   public:
    explicit Running(Stopwatch& watch) : watch_(watch), begin_(Clock::now()) {}
    ~Running() { watch_.add({begin_, Clock::now()}); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Stopwatch& watch_;
    std::chrono::steady_clock::time_point begin_;
  };

  // Counts until the returned object dies.
  [[nodiscard]] Running run() { return Running(*this); }
  // The milliseconds counted since the last take.
  double take_ms() {
    const double ms = std::chrono::duration<double, std::milli>(total_).count();
    total_ = {};
    return ms;
  }
  // Tells each span, too; nullptr: nobody. The observer must outlive its observing.
  void observe(StepObserver* observer) { observer_ = observer; }

 private:
  using Clock = std::chrono::steady_clock;
  void add(TimeSpan time) {
    total_ += time.end - time.begin;
    if (observer_ != nullptr) {
      observer_->exposed(time);
    }
  }

  Clock::duration total_{};
  StepObserver* observer_ = nullptr;
};

}  // namespace lockstep::parallel
