// Finds modules whose gradients LibTorch adds in bf16 inside the kernel.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace lockstep::train {

// Names of LibTorch's own norms and embeddings within `module` whose weight is bf16, as
// named_modules() gives them. Our models' norms and embeddings add in fp32 and are not among them.
std::vector<std::string> narrow_modules(const torch::nn::Module& module);

}  // namespace lockstep::train
