// How a job ended: what each rank ended with, which failure came first, what the user is told.
// Pure.
#pragma once

#include "launch/control_socket.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::launch {

enum class EndedBy : std::uint8_t {
  itself,    // it exited or a signal that we did not send killed it
  launcher,  // we ended it, after another rank's failure or on the user's signal
};

struct RankEnd {
  int rank = 0;
  int wait_status = 0;       // as waitpid gives it
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC when the launcher saw it end
  EndedBy ended_by = EndedBy::itself;
  std::optional<FailureReport> report;  // the first it sent
  std::string last_error_line;          // of its standard error; empty when not seen
};

// Whether the rank failed by itself: it reported a failure, exited non-zero or was killed.
bool failed(const RankEnd& end);

struct Verdict {
  int exit_code = 0;
  std::vector<std::string> lines;  // first cause first, then consequences, then who was ended
};

// `user_signal`: the signal with which the user ended the job, else nullopt. Exit code: 0 when
// every rank exited 0; 128 + signal on a user's signal; 2 when every rank that failed by itself
// exited with 2 (usage); else 1.
Verdict judge(std::span<const RankEnd> ends, std::optional<int> user_signal);

// "ranks 0-2 and 5": what a line starts with.
std::string name_ranks(std::vector<int> ranks);

// "SIGSEGV".
std::string signal_name(int signal);

}  // namespace lockstep::launch
