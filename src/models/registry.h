// Makes models from their configurations, and says how training treats their parameters.
#pragma once

#include "models/catalogue.h"
#include "models/language_model.h"

#include <memory>
#include <string>

namespace lockstep::models {

// A fresh model, drawn from LibTorch's default generator.
std::shared_ptr<LanguageModel> make_model(const ModelConfig& config);

// Norms stay in fp32 under bf16_mixed: their gradients are sums over all tokens.
bool keep_f32(const std::string& name);

// Matrices and embeddings decay, biases and norms do not (as GPT-2 and GPT-3 were trained).
bool decays(const std::string& name, const torch::Tensor& parameter);

}  // namespace lockstep::models
