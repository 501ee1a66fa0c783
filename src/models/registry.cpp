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

// GPT-2 calls them ln_1, ln_2, ln_f; Llama input_layernorm, post_attention_layernorm, norm.
bool keep_f32(const std::string& name) {
  return name.find("ln_") != std::string::npos || name.find("norm.") != std::string::npos;
}

bool decays(const std::string&, const torch::Tensor& parameter) { return parameter.dim() >= 2; }

}  // namespace lockstep::models
