// Whether a run fits into memory, known before any rank starts.
#pragma once

#include "train/options.h"

#include <cstdint>
#include <string>

namespace lockstep::train {

struct MemoryBudget {
  std::int64_t bytes = 0;  // of one rank
  std::string text;        // where it comes from
};

// --device-memory, else the ranks' equal parts of what this host and the control groups above this
// process leave.
MemoryBudget memory_budget(const Options& options);

// Throws UsageError when what each rank holds by formula (plan.h) is more than the budget, or what
// it holds while the model is made: it names the numbers and the smallest stage that fits.
// Activations come on top and are not known: what passes may still be too large. Nothing is refused
// with --force.
void check_fits(const Options& options, const MemoryBudget& budget);

}  // namespace lockstep::train
