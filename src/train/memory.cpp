#include "train/memory.h"

#include "lockstep/error.h"
#include "train/counting_allocator.h"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <string>

namespace lockstep::train {
namespace {

void keep_most(MemorySample& kept, const MemorySample& found) {
  const auto take = [](auto& most, const auto& value) { most = std::max(most, value); };
  take(kept.held.parameters, found.held.parameters);
  take(kept.held.gradients, found.held.gradients);
  take(kept.held.optimizer, found.held.optimizer);
  take(kept.held.transient, found.held.transient);
  take(kept.activations, found.activations);
  take(kept.activations_peak, found.activations_peak);
  take(kept.resident, found.resident);
}

}  // namespace

void keep_freed_memory() {
  constexpr int kNever = 2'000'000'000;  // bytes
  ::mallopt(M_MMAP_THRESHOLD, kNever);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
}

void release_freed_memory() { ::malloc_trim(0); }

Resident resident_memory() {
  release_freed_memory();
  std::ifstream rollup("/proc/self/smaps_rollup");
  Resident resident;
  int found = 0;
  for (std::string key; rollup >> key;) {
    if (key == "Pss_Anon:" || key == "Pss_Shmem:") {
      std::int64_t kilobytes = 0;
      rollup >> kilobytes;
      (key == "Pss_Anon:" ? resident.anonymous : resident.shared) = kilobytes * 1024;
      ++found;
    }
  }
  if (found != 2) {
    throw SystemError(
        "/proc/self/smaps_rollup: expected Pss_Anon and Pss_Shmem, not found; memory can't be "
        "measured without Linux 5.4 or newer and a mounted /proc");
  }
  return resident;
}

MemorySample MemoryWatch::count(Moment moment, const plan::Ledger& held) {
  if (!in_step_) {
    at_rest_ = live_tensor_bytes();
    take_peak_tensor_bytes();
  }
  in_step_ = moment != Moment::after_update;
  return {.held = held,
          // What was at rest and is gone is no activation either.
          .activations = std::max<std::int64_t>(0, live_tensor_bytes() - at_rest_),
          .activations_peak = take_peak_tensor_bytes() - at_rest_};
}

MemorySample MemoryWatch::sample(Moment moment, const plan::Ledger& held) {
  const bool at_rest = !in_step_;
  MemorySample found = count(moment, held);
  const Resident resident = resident_memory();
  found.resident = resident.total() - baseline_;
  if (at_rest) {
    shared_at_rest_ = resident.shared;
  }
  if (at_rest || moment != Moment::before_forward) {
    keep_most(phases_[static_cast<std::size_t>(moment)], found);
  }
  return found;
}

}  // namespace lockstep::train
