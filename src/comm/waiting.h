// How a rank spins, sleeps, and says so while it waits.
#pragma once

#if defined(__SSE__)
#include <immintrin.h>
#endif

#include "comm/control.h"
#include "comm/journal.h"
#include "comm/watch.h"

#include <chrono>
#include <cstdint>

namespace lockstep::comm {

// Between two looks at memory.
inline void relax() {
#if defined(__SSE__)
  _mm_pause();
#endif
}

// Publishers wake this thread while it lives.
class Sleeper {
 public:
  explicit Sleeper(Control& control) : control_(control), ticket_(control.begin_sleep()) {}
  ~Sleeper() { control_.end_sleep(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  void sleep() { control_.sleep(ticket_, kLongest); }

 private:
  static constexpr std::chrono::milliseconds kLongest{50};

  Control& control_;
  std::uint32_t ticket_;
};

// Says in the journal that this rank waits, while it lives.
class Waiting {
 public:
  Waiting(Journal& journal, const Needs& needs) : journal_(journal) {
    journal_.wait_for(*needs.operation, needs.since_ns);
  }
  ~Waiting() { journal_.stop_waiting(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Journal& journal_;
};

}  // namespace lockstep::comm
