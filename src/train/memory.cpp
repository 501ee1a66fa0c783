#include "train/memory.h"

#include "lockstep/error.h"
#include "train/counting_allocator.h"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <string>

namespace lockstep::train {

void keep_freed_memory() {
  constexpr int kNever = 2'000'000'000;  // bytes
  ::mallopt(M_MMAP_THRESHOLD, kNever);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
}

void release_freed_memory() { ::malloc_trim(0); }

std::int64_t resident_bytes() {
  release_freed_memory();
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::int64_t kilobytes = 0;
  int found = 0;
  for (std::string key; rollup >> key;) {
    if (key == "Pss_Anon:" || key == "Pss_Shmem:") {
      std::int64_t value = 0;
      rollup >> value;
      kilobytes += value;
      ++found;
    }
  }
  if (found != 2) {
    throw SystemError(
        "/proc/self/smaps_rollup: expected Pss_Anon and Pss_Shmem, not found; memory can't be "
        "measured without Linux 5.4 or newer and a mounted /proc");
  }
  return kilobytes * 1024;
}

void MemoryWatch::begin() {
  at_rest_ = live_tensor_bytes();
  resident_at_rest_ = measure();
}

void MemoryWatch::sample() { measure(); }

std::int64_t MemoryWatch::measure() {
  activations_peak_ = std::max(activations_peak_, live_tensor_bytes() - at_rest_);
  const std::int64_t resident = resident_bytes() - baseline_;
  resident_peak_ = std::max(resident_peak_, resident);
  return resident;
}

}  // namespace lockstep::train
