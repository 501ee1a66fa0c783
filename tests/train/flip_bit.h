#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

namespace lockstep::test {

// Flips the lowest bit of a parameter's first element, as a broken memory or a lost update would.
inline void flip_bit(torch::nn::Module& model, const std::string& name) {
  const torch::Tensor parameter = model.named_parameters()[name];
  auto* bytes = static_cast<std::uint8_t*>(parameter.mutable_data_ptr());
  bytes[0] = static_cast<std::uint8_t>(bytes[0] ^ 1u);
}

}  // namespace lockstep::test
