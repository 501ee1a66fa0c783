// Which unit each parameter of a module belongs to.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <vector>

namespace lockstep::parallel {

// One number per parameter: that of the innermost Unit (unit.h) that has it, counted from 1 in
// registration order; 0 for what is outside of all, or in several (tied between them).
std::vector<std::size_t> units_of(const torch::nn::Module& module,
                                  const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
