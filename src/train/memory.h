// What a rank's process really holds, against what the ledger says.
#pragma once

#include "lockstep/plan.h"
#include "train/moment.h"

#include <array>
#include <cstdint>
#include <optional>

namespace lockstep::train {

// Makes malloc keep what is freed, for the rest of the process. Memory that a backward frees is
// wanted again by the next one; giving it back to the kernel in between costs more (page faults)
// than anything data parallelism adds. Whatever is compared must do the same.
void keep_freed_memory();

// Gives back what was kept, when no backward will want it again.
void release_freed_memory();

// Bytes resident in this process, each shared page counted as its share among the processes that
// map it.
struct Resident {
  std::int64_t anonymous = 0;  // Pss_Anon of /proc/self/smaps_rollup
  std::int64_t shared = 0;     // Pss_Shmem
  std::int64_t total() const { return anonymous + shared; }
};

// Memory that malloc keeps for reuse is given back first, so that it is not counted. Takes
// milliseconds per GB. Throws SystemError when the kernel does not tell.
Resident resident_memory();

// What a rank holds at one moment of a step, in bytes.
struct MemorySample {
  plan::Ledger held = {};                     // counted by the engine
  std::int64_t activations = 0;               // tensors alive that were not at rest
  std::int64_t activations_peak = 0;          // the most since the moment before
  std::optional<std::int64_t> resident = {};  // less the baseline, where the kernel was asked
};

// Per moment; before_forward: at rest, before the step's first. Of several micro-batches the most.
using MemoryPhases = std::array<MemorySample, kMoments>;

// Looks at memory through a step: call either function at every moment of it.
class MemoryWatch {
 public:
  // `baseline`: what the process held before the model was made.
  explicit MemoryWatch(std::int64_t baseline) : baseline_(baseline) {}

  // `held`: what the engine holds now. Tensors alive at a step's first moment are no activations.
  MemorySample count(Moment moment, const plan::Ledger& held);
  // Asks the kernel too, and keeps the sample.
  MemorySample sample(Moment moment, const plan::Ledger& held);

  std::int64_t baseline() const { return baseline_; }
  const MemoryPhases& phases() const { return phases_; }
  // Shared memory resident at rest, baseline and all.
  std::int64_t shared_at_rest() const { return shared_at_rest_; }

 private:
  std::int64_t baseline_;
  std::int64_t at_rest_ = 0;  // tensors
  bool in_step_ = false;
  MemoryPhases phases_{};
  std::int64_t shared_at_rest_ = 0;
};

}  // namespace lockstep::train
