// What `lockstep doctor --flight` makes of the files that flight recorders left: which rank
// diverged, died, stopped, left or is behind, at which operation, and what each was doing.
#pragma once

#include "cli/finding.h"
#include "comm/flight_log.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct Flights {
  std::string folder;
  std::vector<comm::FlightFile> files;
  // What the process that wrote a file does now; nullopt where it can't be known from here.
  std::function<std::optional<comm::ProcessState::Activity>(const comm::FlightHeader&)> activity;
  std::int64_t now_ns = 0;  // monotonic clock
};

// The files of a folder, and processes of this machine. Throws SystemError when the folder can't be
// listed.
Flights flights_of(const std::string& folder);

// First the cause ("cause"), then a line per rank ("rank 2"), then a line per file that can't be
// used ("file"). Whatever the files hold, each gets its line.
std::vector<Finding> check_flights(const Flights& flights);

}  // namespace lockstep::cli
