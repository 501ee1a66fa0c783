// Where a rank is, in words: what it is doing, since when, and the operations it entered and left
// last. The same words in errors and in `lockstep doctor --flight`.
#pragma once

#include "comm/flight_record.h"
#include "comm/process_state.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::comm {

struct Whereabouts {
  enum class Handle : std::uint8_t { absent, held, left };
  Handle handle = Handle::absent;
  FlightRecord entered;               // last; its number is 0 where there is none
  FlightRecord left;                  // last
  FlightRecord awaited;               // while it waits: for what
  std::int64_t waiting_since_ns = 0;  // 0: it does not wait
  std::int64_t heartbeat_ns = 0;      // its last sign of life
  pid_t process = 0;                  // 0: not known
  // Where that can be seen from here.
  std::optional<ProcessState::Activity> activity;
};

// "computing for 41 s since leaving 'bucket 3' (all_reduce f32[1000], #15)",
// "waiting for 'bucket 4' (…, #16) for 41 s, last left 'bucket 3' (…, #15) 42 s ago",
// "stopped (SIGSTOP); it entered 'bucket 4' (…, #16) 41 s ago and has not left it, last left …".
// `group`: the one that the reader is in; others are named.
std::string describe(const Whereabouts& where, std::uint64_t group, std::int64_t now_ns);

// "41 s", "1.5 s".
std::string seconds(std::int64_t nanoseconds);

}  // namespace lockstep::comm
