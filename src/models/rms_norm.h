// Root-mean-square normalisation (Zhang & Sennrich 2019) with fp32 weights, also under bf16
// activations: everything is computed in fp32, and weight gradients add in fp32.
#pragma once

#include <torch/torch.h>

namespace lockstep::models {

// y [..., C] = x / √(mean of x² + epsilon) · weight over the last dimension, in x's dtype, rounded
// once; x f32 or bf16, weight [C] f32. The same bits at any number of threads.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

}  // namespace lockstep::models
