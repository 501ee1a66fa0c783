// What training, generation and files need of a language model, whichever it is.
//
// Letters in shapes: B sequences, T tokens of a sequence, V vocabulary rows.
#pragma once

#include "models/configuration.h"

#include <torch/torch.h>

#include <cstdint>

namespace lockstep::models {

// Parameters carry Hugging Face's names. They are drawn from LibTorch's default generator in
// registration order. Not for several threads at once.
class LanguageModel : public torch::nn::Module {
 public:
  explicit LanguageModel(const ModelConfig& config);

  // tokens i64 [B, T], T ≤ context → logits [B, T, V] in the activations' dtype.
  virtual torch::Tensor forward(const torch::Tensor& tokens) = 0;
  // Forward passes since construction.
  virtual std::int64_t forwards() const = 0;

  // The mean cross entropy of `targets` [B, T] in nats, computed in fp32; a scalar.
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& targets);
  const ModelConfig& configuration() const { return configuration_; }
  const ModelFacts& facts() const { return facts_; }

 private:
  ModelConfig configuration_;
  ModelFacts facts_;
};

}  // namespace lockstep::models
