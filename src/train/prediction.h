// What a run will hold and move, by the formulas of lockstep/plan.h; nothing here is measured, and
// no LibTorch is needed.
#pragma once

#include "lockstep/plan.h"
#include "models/configuration.h"
#include "train/options.h"

#include <vector>

namespace lockstep::train {

struct Prediction {
  plan::Ledger ledger;  // bytes of a rank
  Traffic step;  // of a rank in one step; flat parameters split evenly, so all ranks' is equal
};

// For the model of `config` trained as `options` says.
Prediction predict(const models::ModelConfig& config, const Options& options);

// What it is computed from.
std::vector<plan::Parameter> planned_parameters(const models::ModelConfig& config,
                                                const Options& options);
plan::Training planned_training(const Options& options);

}  // namespace lockstep::train
