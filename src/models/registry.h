// Makes models from their configurations, and says which of their parameters decay.
#pragma once

#include "models/catalogue.h"
#include "models/language_model.h"

#include <memory>
#include <string>

namespace lockstep::models {

// A fresh model, drawn from LibTorch's default generator.
std::shared_ptr<LanguageModel> make_model(const ModelConfig& config);

// Matrices and embeddings decay, biases and norms do not (as GPT-2 and GPT-3 were trained).
bool decays(const std::string& name, const torch::Tensor& parameter);

}  // namespace lockstep::models
