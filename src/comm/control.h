// The control segment of a group: what its ranks tell each other without messages.
//
// Each rank writes two counters of its own and reads everybody's:
//   issued   operations entered: the fingerprint is posted, and symmetric input is ready
//   stepped  steps executed, over all operations in the order of issue
// Every hand-over of data is ordered by one of them (store-release, load-acquire).
//
// Publishing is sequentially consistent against going to sleep: a publisher that sees no sleeper
// has published before the sleeper looked for the last time.
#pragma once

#include "comm/failure.h"
#include "comm/fingerprint.h"
#include "comm/line.h"
#include "comm/segment.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep::comm {

// Nanoseconds of the monotonic clock, equal for all processes of a host.
std::int64_t now_ns();

class Control {
 public:
  // Fingerprints kept per rank. A rank enters operation s only when it has compared s - kWindow;
  // then every peer has compared s - 2 * kWindow, whose place s takes.
  static constexpr std::uint64_t kWindow = 128;
  static constexpr std::uint64_t kRing = 2 * kWindow;
  static constexpr std::int64_t kSlotBytes = 8 << 10;
  static constexpr int kSlots = 2;
  static constexpr std::int64_t kStageBytes = 1 << 20;
  static constexpr int kStages = 3;
  // Sets of lines, apart from each other: for what all ranks do, and for what two do.
  enum class Lane : std::uint8_t { collective, pair };
  static constexpr int kLanes = 2;

  static std::int64_t bytes(int ranks);
  // Writes what peers check (magic, version, ranks, a random id) into a zeroed segment; one rank.
  static void initialise(Segment& segment, int ranks);

  // Marks `rank` active. Throws SystemError when the segment is not one of `ranks` ranks.
  Control(std::shared_ptr<Segment> segment, int rank, int ranks);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::uint64_t group_id() const { return header_->group_id; }

  std::uint64_t issued(int rank) const {
    return boards_[rank].issued.load(std::memory_order_acquire);
  }
  std::uint64_t stepped(int rank) const {
    return boards_[rank].stepped.load(std::memory_order_acquire);
  }
  std::int64_t last_seen_ns(int rank) const;
  bool left(int rank) const;
  const Fingerprint& posted(int rank, std::uint64_t sequence) const;

  void post(const Fingerprint& fingerprint);  // and publishes issued = its sequence
  void publish_stepped(std::uint64_t steps);
  void beat(std::int64_t at_ns = now_ns());  // a sign of life
  void leave() noexcept;                     // this rank's handle is gone

  // What a rank has published but its fingerprints.
  struct Words {
    std::uint64_t issued = 0;
    std::uint64_t stepped = 0;
    bool left = false;
    friend bool operator==(const Words&, const Words&) = default;
  };
  Words words(int rank) const;
  // Writes down what another rank says, which can't write here itself (mirrored_control.h); its
  // fingerprints are those up to words.issued. Counts as a sign of life.
  void mirror(int rank, const Words& words, std::span<const Fingerprint> fingerprints);

  // Distinct processors that the ranks of the group may run on.
  int cores() const;

  bool failed() const { return header_->failure.set(); }
  Failure failure() const { return header_->failure.get(); }
  // Keeps the first failure of the group and wakes everybody.
  void fail(const Failure& failure);

  // WorldTable::bytes(ranks()) for the group that is a world.
  std::byte* table() const { return table_; }
  // Memory of `rank` for small messages and for chunks in flight.
  std::byte* slot(int index, int rank) const;
  // The set of slots for this rank's next small message; alternates.
  int next_slots() { return next_slots_ = 1 - next_slots_; }
  std::byte* stage(int index, int rank) const;
  // What `from` writes and `to` reads. Pages of lines that nobody uses cost nothing.
  Line& line(Lane lane, int from, int to) const;
  // Wakes whoever sleeps, after something was published in a line.
  void announce();

  // Between begin_sleep() and end_sleep() publishers wake this thread: look once more, then sleep.
  std::uint32_t begin_sleep();
  void sleep(std::uint32_t ticket, std::chrono::milliseconds timeout);
  void end_sleep();

 private:
  enum class State : std::uint32_t { absent, active, left };
  using ProcessorMask = std::array<std::uint64_t, 16>;  // processors 0 to 1023

  struct alignas(64) Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::int32_t ranks;
    std::uint64_t group_id;
    alignas(64) std::atomic<std::uint32_t> sleepers;
    alignas(64) std::atomic<std::uint32_t> events;
    alignas(64) FailureRecord failure;
  };
  struct alignas(64) Board {
    std::atomic<std::uint64_t> issued;
    std::atomic<std::uint64_t> stepped;
    alignas(64) std::atomic<std::int64_t> last_seen_ns;
    std::atomic<State> state;
    std::array<std::atomic<std::uint64_t>, 16> processors;
  };
  using Ring = std::array<Fingerprint, kRing>;

  void note_processors();

  std::shared_ptr<Segment> segment_;
  int rank_;
  int ranks_;
  Header* header_;
  Board* boards_;
  Ring* rings_;
  std::byte* table_;
  std::byte* slots_;
  std::byte* stages_;
  Line* lines_;
  int next_slots_ = 0;
};

}  // namespace lockstep::comm
