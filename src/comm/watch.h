// Why a wait does not end: which peers are behind, what they did last, and whether they live.
#pragma once

#include "comm/control.h"
#include "comm/presence.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::comm {

// What a waiting rank needs of every peer.
struct Needs {
  std::uint64_t issued = 0;
  std::uint64_t stepped = 0;
  std::int64_t since_ns = 0;  // when the wait began
  const Fingerprint* operation = nullptr;
};

class Watch {
 public:
  // `presence` is null where ranks are threads.
  Watch(const Control& control, const Presence* presence, std::chrono::milliseconds deadline,
        std::string group_name)
      : control_(control),
        presence_(presence),
        deadline_(deadline),
        group_name_(std::move(group_name)) {}

  // The failure to record when a peer that is behind has died, left, or given no sign of life for
  // the deadline, counted from the later of that sign and the start of the wait.
  std::optional<Failure> look(const Needs& needs) const;
  // The failure to record when one of `ranks` has died.
  std::optional<Failure> look_for_dead(const std::vector<int>& ranks) const;

 private:
  bool behind(int rank, const Needs& needs) const;
  bool silent(int rank, const Needs& needs, std::int64_t now) const;
  bool dead(int rank) const;
  Failure lost(int rank, const std::string& how, const std::string& needed_for) const;
  Failure timed_out(const Needs& needs, std::int64_t now) const;
  // " (its process 4711 is stopped)", where that can be known.
  std::string process_state(int rank) const;
  // "rank 2: last entered 'bucket 3' (all_reduce f32[1000], #15) 41 s ago".
  std::string last_words(int rank, std::int64_t now) const;

  const Control& control_;
  const Presence* presence_;
  std::chrono::milliseconds deadline_;
  std::string group_name_;
};

}  // namespace lockstep::comm
