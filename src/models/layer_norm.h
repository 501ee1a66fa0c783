// Layer normalisation whose fp32 weights get fp32 gradients also under bf16 activations. LibTorch's
// kernel takes the mix, but adds those gradients in bf16: 4,096 ones come out as 256.
#pragma once

#include <torch/torch.h>

namespace lockstep::models {

// y [..., C] = (x − mean) / √(variance + 1e-5) · weight + bias over the last dimension; weight and
// bias [C], f32 when x is bf16, else of x's dtype. Statistics and products are computed in fp32.
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias);

}  // namespace lockstep::models
