// The flight recorder of a rank: its last 1,000 operations in a file that is always current,
// because it is mapped: whatever ends the process, the kernel keeps what was stored. Costs a few
// hundred bytes of stores per operation and no system call.
#pragma once

#include "comm/flight_file.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::comm {

class FlightRecorder {
 public:
  struct Identity {
    std::uint64_t job = 0;
    int rank = 0;
    int size = 1;
  };
  // Makes the folder where it is missing and DIR/rank-R.flight in it, in place of an earlier one.
  // Throws SystemError, also when the disk can't take the whole file.
  FlightRecorder(const std::string& folder, const Identity& identity);
  // Says in the file that the rank came to its end, unless this is a forked child.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  const std::string& folder() const { return folder_; }

  // From any thread of the rank; numbers come in order within each thread.
  void enter(const FlightRecord& record);
  // Takes over the times and steps of a record that was entered, while it is in the ring.
  void update(const FlightRecord& record);
  void wait_for(std::uint64_t number, std::int64_t since_ns);
  void stop_waiting();
  void beat(std::int64_t now_ns);
  // The first failure stays.
  void fail(std::string_view text);

 private:
  FlightRecord& slot(std::uint64_t number);

  std::string folder_;
  std::byte* data_;
  FlightHeader* header_;
  pid_t process_;
};

}  // namespace lockstep::comm
