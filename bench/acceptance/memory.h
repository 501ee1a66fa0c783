// Memory of a real run against its ledger.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace lockstep::bench {

// Runs `lockstep train` with gpt2-124m at 1x128 on two ranks for three steps and returns
// memory_ratio() of its report. Throws Error when the run fails.
double measure_memory(const std::string& precision);

// Of a report of `lockstep train`: the resident peaks of all ranks together, over their predicted
// ledger and measured activations.
double memory_ratio(const nlohmann::json& report);

}  // namespace lockstep::bench
