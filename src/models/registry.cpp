#include "models/registry.h"

#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::models {
namespace {

struct Entry {
  std::string_view name;
  Gpt2Config config;  // vocabulary 0: the tokenizer's
};

constexpr std::array kModels{
    Entry{"gpt2-tiny", {.layers = 4, .width = 128, .heads = 4, .context = 256, .vocabulary = 0}},
    Entry{"gpt2-124m", {.layers = 12, .width = 768, .heads = 12}},
    Entry{"gpt2-350m", {.layers = 24, .width = 1024, .heads = 16}},
    Entry{"gpt2-774m", {.layers = 36, .width = 1280, .heads = 20}},
};

std::string listed() {
  std::string text;
  for (const Entry& entry : kModels) {
    text += (text.empty() ? "" : ", ") + std::string(entry.name);
  }
  return text;
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Entry& entry : kModels) {
    result.emplace_back(entry.name);
  }
  return result;
}

Gpt2Config config_of(const std::string& model, std::int64_t tokenizer_vocabulary) {
  const auto* found = std::ranges::find(kModels, model, &Entry::name);
  if (found == kModels.end()) {
    throw UsageError("--model " + model + ": unknown; expected one of " + listed());
  }
  Gpt2Config config = found->config;
  if (config.vocabulary == 0) {
    config.vocabulary = tokenizer_vocabulary;
  }
  if (config.vocabulary < tokenizer_vocabulary) {
    throw UsageError("--tokenizer: has " + std::to_string(tokenizer_vocabulary) + " tokens, " +
                     model + " has rows for " + std::to_string(config.vocabulary) +
                     "; choose a smaller tokenizer or another --model");
  }
  return config;
}

std::int64_t parameter_count(const Gpt2Config& config) {
  const std::int64_t c = config.width;
  // Two norms; c_attn, attn.c_proj, c_fc, mlp.c_proj with their biases.
  const std::int64_t block =
      4 * c + (3 * c * c + 3 * c) + (c * c + c) + (4 * c * c + 4 * c) + (4 * c * c + c);
  return (config.vocabulary + config.context) * c + config.layers * block + 2 * c;
}

bool keep_f32(const std::string& name) { return name.find("ln_") != std::string::npos; }

bool decays(const std::string&, const torch::Tensor& parameter) { return parameter.dim() >= 2; }

double flops(const Gpt2Config& config, std::int64_t tokens, std::int64_t sequence) {
  const auto per_token = 6.0 * static_cast<double>(parameter_count(config)) +
                         12.0 * static_cast<double>(config.layers * config.width * sequence);
  return per_token * static_cast<double>(tokens);
}

}  // namespace lockstep::models
