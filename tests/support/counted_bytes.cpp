#include "support/counted_bytes.h"

#include "base/range.h"
#include "comm/control.h"
#include "comm/copy.h"
#include "comm/reduce_kernels.h"
#include "comm/segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

// The kernels themselves, and what callers reach instead: names that --wrap makes.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
void __real__ZN8lockstep4comm10copy_bytesEPvPKvl(void* to, const void* from, std::int64_t bytes);
void __real__ZN8lockstep4comm6reduceERKNS0_10ReduceTaskE(const lockstep::comm::ReduceTask& task);
void __wrap__ZN8lockstep4comm10copy_bytesEPvPKvl(void* to, const void* from, std::int64_t bytes);
void __wrap__ZN8lockstep4comm6reduceERKNS0_10ReduceTaskE(const lockstep::comm::ReduceTask& task);
// NOLINTEND(bugprone-reserved-identifier)
}

namespace lockstep::test {
namespace {

thread_local CountedBytes* g_counting = nullptr;

struct Mapping {
  const std::byte* begin;
  const std::byte* end;
  bool writable;
};

// The mappings of shared memory in this process, by the inode of their memfd; adjacent ones joined.
std::map<std::uint64_t, std::vector<Mapping>> shared_mappings() {
  std::map<std::uint64_t, std::vector<Mapping>> result;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:lockstep") == std::string::npos) {
      continue;
    }
    std::istringstream in(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string access, offset, device;
    std::uint64_t inode = 0;
    in >> std::hex >> begin >> dash >> end >> access >> offset >> device >> std::dec >> inode;
    std::vector<Mapping>& mappings = result[inode];
    const Mapping found{reinterpret_cast<const std::byte*>(begin),
                        reinterpret_cast<const std::byte*>(end), access.at(1) == 'w'};
    if (!mappings.empty() && mappings.back().end == found.begin &&
        mappings.back().writable == found.writable) {
      mappings.back().end = found.end;
    } else {
      mappings.push_back(found);
    }
  }
  return result;
}

}  // namespace

// Where the slots and stages of ranks lie.
std::vector<CountedBytes::Place> CountedBytes::places_in_control(int ranks) {
  const auto segment = comm::Segment::create(comm::Control::bytes(ranks));
  comm::Control::initialise(*segment, ranks);
  const comm::Control control(segment, 0, ranks);
  std::vector<Place> places;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int i = 0; i < comm::Control::kSlots; ++i) {
      places.push_back({control.slot(i, rank) - segment->data(), comm::Control::kSlotBytes, rank});
    }
    for (int i = 0; i < comm::Control::kStages; ++i) {
      places.push_back(
          {control.stage(i, rank) - segment->data(), comm::Control::kStageBytes, rank});
    }
  }
  return places;
}

CountedBytes::CountedBytes(int rank, int ranks)
    : rank_(rank), ranks_(ranks), control_(places_in_control(ranks)) {
  EXPECT_EQ(g_counting, nullptr);
  g_counting = this;
}

std::vector<CountedBytes::Part> CountedBytes::parts() const {
  std::vector<Part> parts;
  const std::int64_t control_bytes = round_up(comm::Control::bytes(ranks_), comm::page_bytes());
  for (const auto& [inode, mappings] : shared_mappings()) {
    const bool host_copy =
        std::ranges::any_of(mappings, [](const Mapping& one) { return !one.writable; });
    for (const Mapping& mapping : mappings) {
      const std::int64_t bytes = mapping.end - mapping.begin;
      if (host_copy) {
        continue;
      }
      if (bytes == control_bytes) {
        for (const Place& place : control_) {
          parts.push_back({mapping.begin + place.offset, mapping.begin + place.offset + place.bytes,
                           place.owner});
        }
        continue;
      }
      for (int owner = 0; owner < ranks_; ++owner) {  // equal parts, each of whole pages
        parts.push_back({mapping.begin + owner * (bytes / ranks_),
                         mapping.begin + (owner + 1) * (bytes / ranks_), owner});
      }
    }
  }
  std::ranges::sort(parts, {}, &Part::begin);
  return parts;
}

CountedBytes::~CountedBytes() { g_counting = nullptr; }

bool CountedBytes::of_another(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const std::vector<Part> all = parts();
  const auto behind = std::ranges::upper_bound(all, byte, {}, &Part::begin);
  return behind != all.begin() && byte < std::prev(behind)->end &&
         std::prev(behind)->owner != rank_;
}

void CountedBytes::note_read(const void* address, std::int64_t bytes) {
  read_ += of_another(address) ? bytes : 0;
}

void CountedBytes::note_written(const void* address, std::int64_t bytes) {
  written_ += of_another(address) ? bytes : 0;
}

}  // namespace lockstep::test

using lockstep::test::g_counting;

void __wrap__ZN8lockstep4comm10copy_bytesEPvPKvl(void* to, const void* from, std::int64_t bytes) {
  if (g_counting != nullptr) {
    g_counting->note_read(from, bytes);
    g_counting->note_written(to, bytes);
  }
  __real__ZN8lockstep4comm10copy_bytesEPvPKvl(to, from, bytes);
}

void __wrap__ZN8lockstep4comm6reduceERKNS0_10ReduceTaskE(const lockstep::comm::ReduceTask& task) {
  if (g_counting != nullptr) {
    const std::int64_t bytes = task.count * lockstep::size_of(task.dtype);
    for (const void* source : task.sources) {
      g_counting->note_read(source, bytes);
    }
    for (const void* destination : task.destinations) {
      g_counting->note_written(
          destination, task.widen ? task.count * lockstep::size_of(lockstep::Dtype::f32) : bytes);
    }
  }
  __real__ZN8lockstep4comm6reduceERKNS0_10ReduceTaskE(task);
}
