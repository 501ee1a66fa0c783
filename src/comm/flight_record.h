// One operation as a rank remembers it: what it was, and when the rank entered, ran and left it.
// What the world's table and the flight recorder keep, and what errors and `lockstep doctor
// --flight` tell of it.
#pragma once

#include "comm/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep::comm {

// Plain words, the same in every process and in files. Kinds and algorithms are texts, so that a
// file says what they are whatever numbers a build gives them.
struct FlightRecord {
  static constexpr std::uint8_t kNoRounding = 0xff;

  std::uint64_t number = 0;    // among all operations of this rank, from 1; 0: no operation
  std::uint64_t group = 0;     // Control::group_id()
  std::uint64_t sequence = 0;  // in its group, from 1
  // Nanoseconds of the monotonic clock; 0: not yet.
  std::int64_t issued_ns = 0;
  std::int64_t started_ns = 0;   // its first step here
  std::int64_t finished_ns = 0;  // its last step here
  std::int64_t left_ns = 0;      // the caller has the result
  std::int64_t step = -1;        // of training, as Group::mark_step() said; -1: it did not
  std::array<std::int64_t, kMaxParts> count = {};
  std::uint64_t scale_bits = 0;
  std::uint64_t memory = 0;  // digest of the places in symmetric memory; 0: plain memory
  std::int32_t root = -1;
  std::int32_t group_rank = 0;
  std::int32_t group_size = 0;
  std::uint32_t steps = 0;      // of the operation on this rank
  std::uint32_t steps_run = 0;  // of them
  std::array<std::uint8_t, kMaxParts> dtype = {};
  std::array<std::uint8_t, kMaxParts> round_to = {};  // kNoRounding: as it is
  std::uint8_t op = 0;
  std::uint8_t parts = 0;
  std::uint8_t scaled = 0;
  std::uint8_t widened = 0;  // bit i: the result of part i is f32, its elements are not
  std::array<char, 24> kind = {};
  std::array<char, 24> algorithm = {};
  std::array<char, 48> name = {};
  std::array<char, 32> group_name = {};  // zero-terminated, as all texts here
};
static_assert(std::is_trivially_copyable_v<FlightRecord> && sizeof(FlightRecord) % 8 == 0);

// The record of an operation that was entered at fingerprint.entered_ns, without its place among
// the rank's operations and groups.
FlightRecord record_of(const Fingerprint& fingerprint);

// Keeps as much of `text` as fits.
template <std::size_t size>
void set_text(std::array<char, size>& place, std::string_view text) {
  place.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), size - 1), place.begin());
}

// Whether a record that came out of a file can be told of: its numbers are in range, its texts end.
bool readable(const FlightRecord& record);

// Whether two ranks' records are of the same call (their times and places aside).
bool same_call(const FlightRecord& a, const FlightRecord& b);

// "f32[1000]+bf16[64]", empty without elements.
std::string elements(const FlightRecord& record);

// "'bucket 3' (all_reduce f32[1000], #15)".
std::string describe_briefly(const FlightRecord& record);

// "all_reduce 'bucket 3' f32[1000] sum, scale 0.5, symmetric".
std::string describe(const FlightRecord& record);

}  // namespace lockstep::comm
