// Tells an observer when each bucket of a step was exchanged; costs a comparison without one.
#pragma once

#include "lockstep/step_observer.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::parallel {

class ExchangeWatch {
 public:
  // nullptr: nobody. Between steps only; the observer must outlive its observing.
  void observe(StepObserver* observer) { observer_ = observer; }

  // The next bucket of the step starts now.
  void started(std::string name, std::int64_t bytes) {
    if (observer_ != nullptr) {
      started_.push_back({std::move(name), bytes, Clock::now(), false});
    }
  }
  // Tells of each started bucket that is_complete(n) for the first time now.
  template <class IsComplete>
  void look(const IsComplete& is_complete) {
    for (std::size_t n = 0; n < started_.size(); ++n) {
      Started& bucket = started_[n];
      if (!bucket.told && is_complete(n)) {
        bucket.told = true;
        observer_->exchanged({bucket.name, bucket.bytes, {bucket.begin, Clock::now()}});
      }
    }
  }
  // The step's buckets are all complete and told.
  void finish() { started_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Started {
    std::string name;
    std::int64_t bytes;
    Clock::time_point begin;
    bool told;
  };

  StepObserver* observer_ = nullptr;
  std::vector<Started> started_;
};

}  // namespace lockstep::parallel
