// Memory of a real run against its ledger.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace lockstep::bench {

struct MemoryQuestion {
  std::string precision = "bf16";
  std::string stage = "ddp";
  int ranks = 2;
};

// What a run's resident peaks of all ranks together come to.
struct MemoryRatios {
  double to_ledger = 0;   // over their predicted ledger and measured activations
  double to_formula = 0;  // less the activations, over bytes_per_parameter() of all parameters
};

// Runs `lockstep train` with gpt2-124m at 1x128 for three steps and returns memory_ratios() of its
// report. Throws Error when the run fails.
MemoryRatios measure_memory(const MemoryQuestion& question);

// Of a report of `lockstep train`.
MemoryRatios memory_ratios(const nlohmann::json& report);

// With AdamW, on each rank of one host: 16 in ddp, 16/P in zero3.
double bytes_per_parameter(const MemoryQuestion& question);

}  // namespace lockstep::bench
