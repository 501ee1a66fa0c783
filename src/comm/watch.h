// Why a wait does not end: which peers are behind, whether they live, and where everybody is.
#pragma once

#include "comm/control.h"
#include "comm/journal.h"
#include "comm/presence.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::comm {

// What a waiting rank needs of every peer.
struct Needs {
  std::uint64_t issued = 0;
  std::uint64_t stepped = 0;
  std::int64_t since_ns = 0;  // when the wait began
  const FlightRecord* operation = nullptr;
  int peer = -1;  // the only one needed, of a message; then that it waits is no sign of life
};

class Watch {
 public:
  struct Setting {
    const Control& control;
    const Presence* presence;  // null where ranks are threads
    const Journal& journal;
    std::vector<int> world_ranks;  // of the group's ranks; empty: the same
    std::chrono::milliseconds deadline;
    std::string group_name;
  };
  explicit Watch(Setting setting);

  // The failure to record when a peer that is behind has died, left, or given no sign of life for
  // the deadline, counted from the later of that sign and the start of the wait. A sign of life is
  // a call of the rank's, a look around while it waits, and processor time that its process used
  // while it did not wait: who computes for longer than the deadline is not lost. For a message
  // only the last of these counts.
  std::optional<Failure> look(const Needs& needs);
  // The failure to record when one of `ranks` has died.
  std::optional<Failure> look_for_dead(const std::vector<int>& ranks) const;

  const std::vector<int>& world_ranks() const { return world_ranks_; }

 private:
  // What was last seen of a process's processor time.
  struct Pulse {
    std::int64_t sampled_ns = 0;
    std::int64_t cpu_ms = 0;
    std::int64_t sign_ns = 0;
  };

  bool behind(int rank, const Needs& needs) const;
  bool silent(int rank, const Needs& needs, std::int64_t now);
  void feel_pulse(int rank, std::int64_t now);
  bool may_have_sent(int rank, const Needs& needs, std::int64_t now) const;
  bool dead(int rank) const;
  Failure lost(int rank, const std::string& how, const std::string& needed_for) const;
  Failure timed_out(const Needs& needs, const std::vector<int>& silent_ranks) const;
  std::string line_of(int world_rank) const;
  // A line per rank of the world, `first` (ranks of the group) before the others.
  std::string everybody(const std::vector<int>& first) const;

  const Control& control_;
  const Presence* presence_;
  const Journal& journal_;
  std::vector<int> world_ranks_;
  bool is_world_ = true;
  std::chrono::nanoseconds deadline_;
  std::string group_name_;
  std::vector<Pulse> pulses_;
};

}  // namespace lockstep::comm
