// Adds up the time a thread spends in some of its work (exposed communication).
#pragma once

#include <chrono>

namespace lockstep::parallel {

class Stopwatch {
 public:
  class Running {
   public:
    explicit Running(Stopwatch& watch) : watch_(watch), begin_(Clock::now()) {}
    ~Running() { watch_.total_ += Clock::now() - begin_; }
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

 private:
  using Clock = std::chrono::steady_clock;
  Clock::duration total_{};
};

}  // namespace lockstep::parallel
