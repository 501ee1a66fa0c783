// Where training text comes from, checked before anything is built on it.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::data {

// The file that `--data` means: "text" is $LOCKSTEP_TEXT, else the plays that set-up put into the
// source folder; anything else is a path. Throws UsageError when "text" has not been set up.
std::string resolve(const std::string& data);

// A readable regular file with at least one byte, as it is now.
struct TextSource {
  std::string path;  // absolute
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  // its modification time since the epoch
  // Hash of its content where it is small, else of pieces spread over it: an edit that hides from
  // size and time may show here.
  std::uint64_t sample = 0;

  friend bool operator==(const TextSource&, const TextSource&) = default;
};

// Throws UsageError, one line naming the file: missing, a folder, unreadable, empty.
TextSource inspect(const std::string& path);

}  // namespace lockstep::data
