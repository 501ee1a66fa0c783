// How far gradients may be from those in double precision.
#pragma once

#include <torch/torch.h>

namespace lockstep::models {

// max|got − exact| / max|exact|.
inline double relative_error(const torch::Tensor& got, const torch::Tensor& exact) {
  const torch::Tensor apart = (got.to(torch::kFloat64) - exact).abs().max();
  return (apart / exact.abs().max()).item<double>();
}

// A leaf with the same values in double precision.
inline torch::Tensor exact_leaf(const torch::Tensor& tensor) {
  return tensor.detach().to(torch::kFloat64).requires_grad_(true);
}

}  // namespace lockstep::models
