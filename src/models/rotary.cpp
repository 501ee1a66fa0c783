#include "models/rotary.h"

namespace lockstep::models {

using torch::Tensor;

RotaryAngles rotary_angles(std::int64_t length, std::int64_t head_size, double theta) {
  const Tensor exponents = torch::arange(0, head_size, 2, torch::kFloat32) / head_size;  // [D/2]
  const Tensor frequencies = torch::reciprocal(torch::pow(theta, exponents));
  const Tensor positions = torch::arange(0, length, torch::kFloat32);
  const Tensor angles = torch::outer(positions, frequencies);  // [T, D/2]
  return {angles.cos(), angles.sin()};
}

Tensor rotated(const Tensor& x, const RotaryAngles& angles) {
  const auto halves = x.chunk(2, -1);  // 2 × [B, H, T, D/2]
  const Tensor first = halves[0] * angles.cosine - halves[1] * angles.sine;
  const Tensor second = halves[1] * angles.cosine + halves[0] * angles.sine;
  return torch::cat({first, second}, -1).to(x.scalar_type());
}

}  // namespace lockstep::models
