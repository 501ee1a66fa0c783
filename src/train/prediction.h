// What a run will hold and move, by the formulas of lockstep/plan.h; nothing here is measured.
#pragma once

#include "lockstep/plan.h"
#include "train/options.h"

#include <torch/torch.h>

namespace lockstep::train {

struct Prediction {
  plan::Ledger ledger;  // bytes of a rank
  Traffic step;  // of a rank in one step; flat parameters split evenly, so all ranks' is equal
};

// For `model` trained as `options` says.
Prediction predict(const torch::nn::Module& model, const Options& options);

}  // namespace lockstep::train
