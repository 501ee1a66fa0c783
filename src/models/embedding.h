// Rows of a weight by token id. LibTorch adds bf16 embedding gradients in bf16 inside its kernel;
// this one adds in fp32 and rounds once.
#pragma once

#include <torch/torch.h>

namespace lockstep::models {

// rows [..., C] = weight[tokens]; weight [V, C] f32 or bf16, tokens i64 in [0, V).
// The gradient of `weight` arrives sparse (one row per distinct token): use it on shared_weight().
torch::Tensor embed(const torch::Tensor& tokens, const torch::Tensor& weight);

// `weight` itself, for a weight that is used both by embed() and by a matmul. What its users send
// back is added here, the rows of the embedding into the matmul's full gradient, and passed on
// dense: no second [V, C] tensor is filled and added.
torch::Tensor shared_weight(const torch::Tensor& weight);

}  // namespace lockstep::models
