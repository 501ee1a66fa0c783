#include "models/llama.h"

#include "base/invariant.h"
#include "models/embedding.h"
#include "models/rms_norm.h"

#include <optional>

namespace lockstep::models {

using torch::Tensor;

MatrixImpl::MatrixImpl(std::int64_t out, std::int64_t in, double deviation)
    : weight_(register_parameter("weight", torch::empty({out, in}).normal_(0.0, deviation))) {}

Tensor MatrixImpl::forward(const Tensor& x) { return torch::linear(x, weight_); }

LlamaNormImpl::LlamaNormImpl(const LlamaConfig& config)
    : epsilon_(config.norm_epsilon),
      weight_(register_parameter("weight", torch::ones({config.width}))) {}

Tensor LlamaNormImpl::forward(const Tensor& x) { return rms_norm(x, weight_, epsilon_); }

LlamaAttentionImpl::LlamaAttentionImpl(const LlamaConfig& config)
    : heads_(config.heads), head_size_(config.head_size) {
  const std::int64_t queries = config.heads * config.head_size;
  const std::int64_t keys = config.key_heads * config.head_size;
  const double deviation = config.initial_deviation;
  q_proj_ = register_module("q_proj", Matrix(queries, config.width, deviation));
  k_proj_ = register_module("k_proj", Matrix(keys, config.width, deviation));
  v_proj_ = register_module("v_proj", Matrix(keys, config.width, deviation));
  o_proj_ = register_module("o_proj", Matrix(config.width, queries, deviation));
}

Tensor LlamaAttentionImpl::by_head(const Tensor& x) const {
  return x.view({x.size(0), x.size(1), -1, head_size_}).transpose(1, 2);
}

Tensor LlamaAttentionImpl::for_each_query(const Tensor& x) const {
  const std::int64_t group = heads_ / x.size(1);
  if (group == 1) {
    return x;
  }
  return x.unsqueeze(2).expand({-1, -1, group, -1, -1}).flatten(1, 2);
}

Tensor LlamaAttentionImpl::forward(const Tensor& x, const RotaryAngles& angles) {
  const Tensor queries = rotated(by_head(q_proj_->forward(x)), angles);  // [B, H, T, D]
  const Tensor keys = rotated(by_head(k_proj_->forward(x)), angles);     // [B, key heads, T, D]
  const Tensor values = by_head(v_proj_->forward(x));                    // [B, key heads, T, D]
  const Tensor mixed =
      at::scaled_dot_product_attention(queries, for_each_query(keys), for_each_query(values),
                                       std::nullopt, /*dropout_p=*/0.0, /*is_causal=*/true);
  return o_proj_->forward(mixed.transpose(1, 2).flatten(2));
}

LlamaMlpImpl::LlamaMlpImpl(const LlamaConfig& config)
    : gate_proj_(register_module("gate_proj",
                                 Matrix(config.hidden, config.width, config.initial_deviation))),
      up_proj_(register_module("up_proj",
                               Matrix(config.hidden, config.width, config.initial_deviation))),
      down_proj_(register_module("down_proj",
                                 Matrix(config.width, config.hidden, config.initial_deviation))) {}

Tensor LlamaMlpImpl::forward(const Tensor& x) {
  return down_proj_->forward(torch::silu(gate_proj_->forward(x)) * up_proj_->forward(x));
}

LlamaBlockImpl::LlamaBlockImpl(const LlamaConfig& config)
    : input_layernorm_(register_module("input_layernorm", LlamaNorm(config))),
      self_attn_(register_module("self_attn", LlamaAttention(config))),
      post_attention_layernorm_(register_module("post_attention_layernorm", LlamaNorm(config))),
      mlp_(register_module("mlp", LlamaMlp(config))) {}

Tensor LlamaBlockImpl::forward(const Tensor& x, const RotaryAngles& angles) {
  const Tensor attended = x + self_attn_->forward(input_layernorm_->forward(x), angles);
  return attended + mlp_->forward(post_attention_layernorm_->forward(attended));
}

LlamaBodyImpl::LlamaBodyImpl(const LlamaConfig& config)
    : head_size_(config.head_size),
      rope_theta_(config.rope_theta),
      embed_tokens_(register_module(
          "embed_tokens", Matrix(config.vocabulary, config.width, config.initial_deviation))),
      norm_(nullptr) {
  torch::nn::ModuleList list;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    layers_.emplace_back(config);
    list->push_back(layers_.back().ptr());
  }
  register_module("layers", list);
  norm_ = register_module("norm", LlamaNorm(config));
}

Tensor LlamaBodyImpl::forward(const Tensor& tokens, const Tensor& embedding) {
  const RotaryAngles angles = rotary_angles(tokens.size(1), head_size_, rope_theta_);
  Tensor x = embed(tokens, embedding);  // [B, T, C]
  for (auto& layer : layers_) {
    x = layer(x, angles);
  }
  return norm_->forward(x);
}

LlamaImpl::LlamaImpl(const LlamaConfig& config)
    : LanguageModel(config),
      model_(register_module("model", LlamaBody(config))),
      lm_head_(nullptr) {
  LOCKSTEP_INVARIANT(config.heads % config.key_heads, ==, 0);
  LOCKSTEP_INVARIANT(config.head_size % 2, ==, 0);
  if (!config.tied) {
    lm_head_ = register_module("lm_head",
                               Matrix(config.vocabulary, config.width, config.initial_deviation));
  }
}

Tensor LlamaImpl::forward(const Tensor& tokens) {
  LOCKSTEP_INVARIANT(tokens.size(1), <=, config().context);
  const Tensor embedding = shared_weight(model_->token_weight());  // [V, C]
  const Tensor x = model_->forward(tokens, embedding);             // [B, T, C]
  return lm_head_.is_empty() ? torch::linear(x, embedding) : lm_head_->forward(x);
}

}  // namespace lockstep::models
