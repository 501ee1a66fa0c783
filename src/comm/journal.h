// Where a rank says where it is: a line in the world's table for its peers and, when asked for, a
// flight recorder's file. Shared by all groups that a rank has from one world.
#pragma once

#include "comm/flight_recorder.h"
#include "comm/presence.h"
#include "comm/world_table.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace lockstep::comm {

class Journal {
 public:
  struct World {
    std::shared_ptr<Segment> segment;  // keeps the table
    WorldTable table;
    std::shared_ptr<const Presence> presence;  // null where ranks are threads
    std::uint64_t id = 0;                      // Control::group_id()
    int rank = 0;
  };
  explicit Journal(World world);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  int rank() const { return world_.rank; }
  int ranks() const { return world_.table.ranks(); }
  // Where a rank of the world is, with what /proc says of its process.
  Whereabouts where(int rank) const;

  // Starts the file; throws SystemError. A second call with the same folder does nothing, with
  // another one throws UsageError.
  void record_to(const std::string& folder);
  // Where it records; empty: nowhere.
  std::string folder() const;
  void mark_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }

  // Gives the record its number and step and notes it.
  void enter(FlightRecord& record);
  void note_start(FlightRecord& record);
  void note_steps(const FlightRecord& record);
  void note_finish(FlightRecord& record);
  void leave(FlightRecord& record, std::int64_t now_ns);
  void wait_for(const FlightRecord& record, std::int64_t since_ns);
  void stop_waiting();
  void beat(std::int64_t now_ns);
  void fail(std::string_view text);

 private:
  FlightRecorder* recorder() const { return recorder_.load(std::memory_order_acquire); }

  World world_;
  pid_t process_;
  std::atomic<std::uint64_t> entered_ = 0;
  std::atomic<std::int64_t> step_ = -1;
  std::mutex opening_;
  std::unique_ptr<FlightRecorder> owned_;
  std::atomic<FlightRecorder*> recorder_ = nullptr;  // owned_, for whoever needs no lock
};

}  // namespace lockstep::comm
