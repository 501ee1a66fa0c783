// The layout of a flight recorder's file: one page of header, then a ring of records. Operation
// number n of the rank lies at (n - 1) mod kFlightRecords, and record.number says so only while the
// rest of it is whole: a reader drops a record whose number does not fit its place.
#pragma once

#include "comm/flight_record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::comm {

inline constexpr std::uint64_t kFlightRecords = 1000;
inline constexpr std::array<char, 8> kFlightMagic = {'L', 'K', 'F', 'L', 'I', 'G', 'H', 'T'};
inline constexpr std::uint32_t kFlightVersion = 1;

struct FlightHeader {
  enum class State : std::uint32_t {
    recording,
    closed,  // the rank destroyed its handles
  };
  std::array<char, 8> magic = kFlightMagic;
  std::uint32_t version = kFlightVersion;
  std::uint32_t record_bytes = sizeof(FlightRecord);
  std::uint64_t records = kFlightRecords;
  std::uint64_t job = 0;  // the world's Control::group_id(): the same in all files of a job
  std::int32_t rank = 0;  // in the world
  std::int32_t size = 0;
  std::int32_t process = 0;
  State state = State::recording;
  std::uint64_t process_started_at = 0;  // ProcessState::started_at
  std::int64_t opened_ns = 0;            // monotonic clock
  std::int64_t opened_unix_ns = 0;       // the same moment by the calendar
  std::array<char, 40> boot = {};        // of the kernel: clocks and processes are of this one only
  std::array<char, 64> host = {};
  std::array<char, 32> build = {};  // LOCKSTEP_VERSION
  // These change while it records.
  std::uint64_t last_number = 0;
  std::int64_t heartbeat_ns = 0;
  std::int64_t waiting_since_ns = 0;  // 0: it does not wait
  std::uint64_t awaited_number = 0;   // while it waits
  std::uint64_t failure_bytes = 0;    // of the text below; 0: it has not failed
  std::array<char, 2000> failure = {};
};

inline constexpr std::size_t kFlightHeaderBytes = 4096;
inline constexpr std::size_t kFlightFileBytes =
    kFlightHeaderBytes + kFlightRecords * sizeof(FlightRecord);
static_assert(sizeof(FlightHeader) <= kFlightHeaderBytes);

// "DIR/rank-2.flight".
inline std::string flight_path(const std::string& folder, int rank) {
  return folder + "/rank-" + std::to_string(rank) + ".flight";
}

}  // namespace lockstep::comm
