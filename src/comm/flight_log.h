// Reading what flight recorders left, of living and dead ranks, whatever state the files are in.
#pragma once

#include "comm/flight_file.h"
#include "comm/whereabouts.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::comm {

// What one file says.
struct FlightLog {
  FlightHeader header;
  std::vector<FlightRecord> records;  // whole ones, by number
  std::uint64_t torn = 0;             // places that should hold a record and do not
  std::string cut;                    // "holds 8192 of 304096 bytes"; empty: all of it is there

  std::string failure() const { return {header.failure.data(), header.failure_bytes}; }
  // What the rank last said of itself; no process state.
  Whereabouts where() const;
};

struct FlightFile {
  std::string path;
  std::optional<FlightLog> log;
  std::string problem;  // why there is none, in a line
};

// Never throws for what a file holds. Files that are being written are read as they are.
FlightFile read_flight(const std::string& path);

// The files rank-*.flight of a folder, by name. Throws SystemError when it can't be listed.
std::vector<FlightFile> read_flights(const std::string& folder);

}  // namespace lockstep::comm
