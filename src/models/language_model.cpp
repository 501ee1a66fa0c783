#include "models/language_model.h"

namespace lockstep::models {

LanguageModel::LanguageModel(const ModelConfig& config)
    : configuration_(config), facts_(facts_of(config)) {}

torch::Tensor LanguageModel::loss(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const torch::Tensor logits = forward(tokens);  // [B, T, V]
  return torch::cross_entropy_loss(logits.to(torch::kFloat32).view({-1, facts_.vocabulary}),
                                   targets.reshape({-1}));
}

}  // namespace lockstep::models
