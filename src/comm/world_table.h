// The world's table: where each rank of a world is, over all its groups, for its peers to read when
// a wait does not end. Lies in the control segment of the group that all others were split from.
//
// A rank writes its own station only, a few stores per operation; readers get a consistent copy
// without making it wait.
#pragma once

#include "comm/segment.h"
#include "comm/whereabouts.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::comm {

class WorldTable {
 public:
  static std::int64_t bytes(int ranks);

  // `place`: zeroed memory of bytes(ranks), shared by the ranks; what it is cut out of must outlive
  // this object.
  WorldTable(std::byte* place, int ranks);

  int ranks() const { return ranks_; }

  // What `rank` does, as far as it says so itself (no process state).
  Whereabouts read(int rank) const;

  // By the rank itself, from any of its threads.
  void arrive(int rank, pid_t process);
  void enter(int rank, const FlightRecord& record);
  void leave_operation(int rank, const FlightRecord& record);
  void wait_for(int rank, const FlightRecord& record, std::int64_t since_ns);
  void stop_waiting(int rank);
  void beat(int rank, std::int64_t now_ns);
  void leave(int rank);

 private:
  static constexpr std::size_t kWords = sizeof(FlightRecord) / 8;
  using Words = std::array<std::atomic<std::uint64_t>, kWords>;

  struct alignas(64) Station {
    std::atomic<std::uint64_t> version;  // odd while it is written
    std::atomic<Whereabouts::Handle> handle;
    std::atomic<std::int32_t> process;
    std::atomic<std::int64_t> waiting_since_ns;
    std::atomic<std::int64_t> heartbeat_ns;
    Words entered;
    Words left;
    Words awaited;
  };
  class Writing;

  static void store(Words& words, const FlightRecord& record);
  static FlightRecord load(const Words& words);

  Station* stations_;
  int ranks_;
};

}  // namespace lockstep::comm
