// What a rank's process really holds, against what the ledger says.
#pragma once

#include <cstdint>

namespace lockstep::train {

// Makes malloc keep what is freed, for the rest of the process. Memory that a backward frees is
// wanted again by the next one; giving it back to the kernel in between costs more (page faults)
// than anything data parallelism adds. Whatever is compared must do the same.
void keep_freed_memory();

// Gives back what was kept, when no backward will want it again.
void release_freed_memory();

// Bytes of anonymous and shared memory resident in this process, each shared page counted as its
// share among the processes that map it (Pss_Anon + Pss_Shmem of /proc/self/smaps_rollup). Memory
// that malloc keeps for reuse is given back first, so that it is not counted. Takes milliseconds
// per GB. Throws SystemError when the kernel does not tell.
std::int64_t resident_bytes();

// Sampled during one step, in bytes; `resident` at rest and where it was highest, activations where
// they were highest.
class MemoryWatch {
 public:
  // `baseline`: what the process held before the model was made.
  explicit MemoryWatch(std::int64_t baseline) : baseline_(baseline) {}

  // Call at rest: tensors alive now are no activations.
  void begin();
  // Takes a sample.
  void sample();

  std::int64_t baseline() const { return baseline_; }
  // Less the baseline; at rest as begin() found it.
  std::int64_t resident_at_rest() const { return resident_at_rest_; }
  std::int64_t resident_peak() const { return resident_peak_; }
  std::int64_t activations_peak() const { return activations_peak_; }

 private:
  std::int64_t measure();

  std::int64_t baseline_;
  std::int64_t at_rest_ = 0;
  std::int64_t resident_at_rest_ = 0;
  std::int64_t resident_peak_ = 0;
  std::int64_t activations_peak_ = 0;
};

}  // namespace lockstep::train
