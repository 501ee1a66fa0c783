#include "models/registry.h"

#include "models/gpt2.h"
#include "models/llama.h"

namespace lockstep::models {

std::shared_ptr<LanguageModel> make_model(const ModelConfig& config) {
  if (const auto* const gpt2 = std::get_if<Gpt2Config>(&config)) {
    return std::make_shared<Gpt2Impl>(*gpt2);
  }
  return std::make_shared<LlamaImpl>(std::get<LlamaConfig>(config));
}

bool decays(const std::string&, const torch::Tensor& parameter) { return parameter.dim() >= 2; }

}  // namespace lockstep::models
