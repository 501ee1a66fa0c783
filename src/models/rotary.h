// Rotary position embedding (Su et al. 2021) in Hugging Face's layout: the first half of a head's
// elements and the second are the pairs that turn.
//
// Letters in shapes: B sequences, T tokens, H heads, D elements of a head (even).
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace lockstep::models {

// Of position t and pair i the angle t / theta^(2i/D); f32 [T, D/2].
struct RotaryAngles {
  torch::Tensor cosine;
  torch::Tensor sine;
};
RotaryAngles rotary_angles(std::int64_t length, std::int64_t head_size, double theta);

// x [B, H, T, D] with each pair turned by its angle, computed in fp32, in x's dtype.
torch::Tensor rotated(const torch::Tensor& x, const RotaryAngles& angles);

}  // namespace lockstep::models
