// The parameters that a model will have, before it is made. No LibTorch here; tests hold the list
// to what the models register.
#pragma once

#include "models/configuration.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::models {

struct ListedParameter {
  std::string name;  // Hugging Face's
  std::int64_t elements = 0;
  std::size_t unit = 0;  // the block it belongs to, from 1; 0: none
};

// In registration order, a tied matrix once.
std::vector<ListedParameter> parameters_of(const ModelConfig& config);

// Norms stay in fp32 under bf16_mixed: their gradients are sums over all tokens.
bool keep_f32(const std::string& name);

}  // namespace lockstep::models
