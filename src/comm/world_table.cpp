#include "comm/world_table.h"

#include <algorithm>
#include <bit>
#include <sched.h>

namespace lockstep::comm {

// One writer at a time: the threads of a rank share its station.
class WorldTable::Writing {
 public:
  explicit Writing(Station& station) : station_(station) {
    std::uint64_t version = station_.version.load(std::memory_order_relaxed) & ~std::uint64_t{1};
    while (
        !station_.version.compare_exchange_weak(version, version + 1, std::memory_order_acq_rel)) {
      version &= ~std::uint64_t{1};
      ::sched_yield();
    }
    version_ = version + 2;
  }
  ~Writing() { station_.version.store(version_, std::memory_order_release); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  Station& station_;
  std::uint64_t version_;
};

std::int64_t WorldTable::bytes(int ranks) { return ranks * std::int64_t{sizeof(Station)}; }

WorldTable::WorldTable(std::byte* place, int ranks)
    : stations_(reinterpret_cast<Station*>(place)), ranks_(ranks) {}

void WorldTable::store(Words& words, const FlightRecord& record) {
  const auto values = std::bit_cast<std::array<std::uint64_t, kWords>>(record);
  for (std::size_t i = 0; i < kWords; ++i) {
    // Not before the odd version is there, which a plain store might be.
    words[i].store(values[i], std::memory_order_release);
  }
}

FlightRecord WorldTable::load(const Words& words) {
  std::array<std::uint64_t, kWords> values;
  for (std::size_t i = 0; i < kWords; ++i) {
    values[i] = words[i].load(std::memory_order_acquire);
  }
  return std::bit_cast<FlightRecord>(values);
}

Whereabouts WorldTable::read(int rank) const {
  constexpr int kTries = 1000;  // a rank that was killed while it wrote leaves an odd version
  Station& station = stations_[rank];
  Whereabouts where;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = station.version.load(std::memory_order_acquire);
    where.handle = station.handle.load(std::memory_order_relaxed);
    where.process = station.process.load(std::memory_order_relaxed);
    where.waiting_since_ns = station.waiting_since_ns.load(std::memory_order_relaxed);
    where.heartbeat_ns = station.heartbeat_ns.load(std::memory_order_relaxed);
    where.entered = load(station.entered);
    where.left = load(station.left);
    where.awaited = load(station.awaited);
    if (before % 2 == 0 && station.version.load(std::memory_order_relaxed) == before) {
      break;
    }
    ::sched_yield();
  }
  return where;
}

void WorldTable::arrive(int rank, pid_t process) {
  stations_[rank].process.store(process, std::memory_order_relaxed);
  stations_[rank].handle.store(Whereabouts::Handle::held, std::memory_order_relaxed);
}

void WorldTable::enter(int rank, const FlightRecord& record) {
  const Writing writing(stations_[rank]);
  store(stations_[rank].entered, record);
  stations_[rank].heartbeat_ns.store(record.issued_ns, std::memory_order_relaxed);
}

void WorldTable::leave_operation(int rank, const FlightRecord& record) {
  const Writing writing(stations_[rank]);
  store(stations_[rank].left, record);
  stations_[rank].heartbeat_ns.store(record.left_ns, std::memory_order_relaxed);
}

void WorldTable::wait_for(int rank, const FlightRecord& record, std::int64_t since_ns) {
  const Writing writing(stations_[rank]);
  store(stations_[rank].awaited, record);
  stations_[rank].waiting_since_ns.store(since_ns, std::memory_order_relaxed);
}

void WorldTable::stop_waiting(int rank) {
  stations_[rank].waiting_since_ns.store(0, std::memory_order_relaxed);
}

void WorldTable::beat(int rank, std::int64_t now_ns) {
  stations_[rank].heartbeat_ns.store(now_ns, std::memory_order_relaxed);
}

void WorldTable::leave(int rank) {
  stations_[rank].handle.store(Whereabouts::Handle::left, std::memory_order_relaxed);
}

}  // namespace lockstep::comm
