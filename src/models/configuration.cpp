#include "models/configuration.h"

#include "base/quantity.h"
#include "lockstep/error.h"

namespace lockstep::models {
namespace {

ModelFacts facts(const Gpt2Config& config) {
  const std::int64_t c = config.width;
  // Two norms; c_attn, attn.c_proj, c_fc, mlp.c_proj with their biases.
  const std::int64_t block =
      4 * c + (3 * c * c + 3 * c) + (c * c + c) + (4 * c * c + 4 * c) + (4 * c * c + c);
  return {.parameters = (config.vocabulary + config.context) * c + config.layers * block + 2 * c,
          .layers = config.layers,
          .attention_width = c,
          .context = config.context,
          .vocabulary = config.vocabulary};
}

ModelFacts facts(const LlamaConfig& config) {
  const std::int64_t c = config.width;
  const std::int64_t queries = config.heads * config.head_size;
  const std::int64_t keys = config.key_heads * config.head_size;
  // Two norms; q, k, v and o; gate, up and down.
  const std::int64_t block = 2 * c + 2 * c * queries + 2 * c * keys + 3 * c * config.hidden;
  const std::int64_t matrices = config.tied ? 1 : 2;
  return {.parameters = matrices * config.vocabulary * c + config.layers * block + c,
          .layers = config.layers,
          .attention_width = queries,
          .context = config.context,
          .vocabulary = config.vocabulary};
}

}  // namespace

ModelFacts facts_of(const ModelConfig& config) {
  return std::visit([](const auto& one) { return facts(one); }, config);
}

void set_dropout(ModelConfig& config, double dropout) {
  if (auto* const gpt2 = std::get_if<Gpt2Config>(&config)) {
    gpt2->dropout = dropout;
  } else if (dropout != 0) {
    throw UsageError("--dropout " + quantity::text_of(dropout) +
                     ": a Llama has no dropout; use --dropout 0, or a GPT-2");
  }
}

double flops(const ModelFacts& facts, std::int64_t tokens, std::int64_t sequence) {
  const auto per_token =
      6.0 * static_cast<double>(facts.parameters) +
      12.0 * static_cast<double>(facts.layers * facts.attention_width * sequence);
  return per_token * static_cast<double>(tokens);
}

}  // namespace lockstep::models
