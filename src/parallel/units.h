// The units of a module, and which of them each parameter belongs to.
#pragma once

#include "lockstep/unit.h"

#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace lockstep::parallel {

// The module's side as a unit; nullptr where it is none.
UnitBase* unit_in(const std::shared_ptr<torch::nn::Module>& module);

// One number per parameter: that of the innermost Unit (unit.h) that has it, counted from 1 in
// registration order; 0 for what is outside of all, or in several (tied between them).
std::vector<std::size_t> units_of(const torch::nn::Module& module,
                                  const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
