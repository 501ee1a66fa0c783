#include "models/gpt2.h"

#include "base/invariant.h"
#include "models/embedding.h"
#include "models/layer_norm.h"

#include <cmath>
#include <optional>

namespace lockstep::models {
namespace {

using torch::Tensor;

constexpr double kDeviation = 0.02;

Tensor drawn(torch::IntArrayRef shape, double deviation) {
  return torch::empty(shape).normal_(0.0, deviation);
}

// Projections that end a residual branch start smaller: 2L of them add up.
double residual_deviation(const Gpt2Config& config) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
}

Tensor drop(const Tensor& x, double probability, bool training) {
  return probability > 0 && training ? torch::dropout(x, probability, true) : x;
}

}  // namespace

ProjectionImpl::ProjectionImpl(std::int64_t in, std::int64_t out, double deviation)
    : weight_(register_parameter("weight", drawn({out, in}, deviation))),
      bias_(register_parameter("bias", torch::zeros({out}))) {}

Tensor ProjectionImpl::forward(const Tensor& x) { return torch::linear(x, weight_, bias_); }

NormImpl::NormImpl(std::int64_t width)
    : weight_(register_parameter("weight", torch::ones({width}))),
      bias_(register_parameter("bias", torch::zeros({width}))) {}

Tensor NormImpl::forward(const Tensor& x) { return layer_norm(x, weight_, bias_); }

AttentionImpl::AttentionImpl(const Gpt2Config& config)
    : heads_(config.heads),
      dropout_(config.dropout),
      c_attn_(register_module("c_attn", Projection(config.width, 3 * config.width, kDeviation))),
      c_proj_(register_module(
          "c_proj", Projection(config.width, config.width, residual_deviation(config)))) {}

Tensor AttentionImpl::forward(const Tensor& x) {
  const std::int64_t batch = x.size(0);
  const std::int64_t length = x.size(1);
  const std::int64_t width = x.size(2);
  const auto by_head = [&](const Tensor& part) {  // [B, T, C] → [B, H, T, C/H]
    return part.view({batch, length, heads_, width / heads_}).transpose(1, 2);
  };
  const auto parts = c_attn_->forward(x).split(width, 2);  // 3 × [B, T, C]
  const Tensor mixed = at::scaled_dot_product_attention(
      by_head(parts[0]), by_head(parts[1]), by_head(parts[2]), std::nullopt,
      is_training() ? dropout_ : 0.0, /*is_causal=*/true);                      // [B, H, T, C/H]
  const Tensor joined = mixed.transpose(1, 2).reshape({batch, length, width});  // [B, T, C]
  return drop(c_proj_->forward(joined), dropout_, is_training());
}

MlpImpl::MlpImpl(const Gpt2Config& config)
    : dropout_(config.dropout),
      c_fc_(register_module("c_fc", Projection(config.width, 4 * config.width, kDeviation))),
      c_proj_(register_module(
          "c_proj", Projection(4 * config.width, config.width, residual_deviation(config)))) {}

Tensor MlpImpl::forward(const Tensor& x) {
  const Tensor wide = torch::gelu(c_fc_->forward(x), "tanh");  // [B, T, 4C]
  return drop(c_proj_->forward(wide), dropout_, is_training());
}

BlockImpl::BlockImpl(const Gpt2Config& config)
    : ln_1_(register_module("ln_1", Norm(config.width))),
      attn_(register_module("attn", Attention(config))),
      ln_2_(register_module("ln_2", Norm(config.width))),
      mlp_(register_module("mlp", Mlp(config))) {}

Tensor BlockImpl::forward(const Tensor& x) {
  const Tensor attended = x + attn_->forward(ln_1_->forward(x));  // [B, T, C]
  return attended + mlp_->forward(ln_2_->forward(attended));
}

RowsImpl::RowsImpl(std::int64_t rows, std::int64_t width)
    : weight_(register_parameter("weight", drawn({rows, width}, kDeviation))) {}

TransformerImpl::TransformerImpl(const Gpt2Config& config)
    : dropout_(config.dropout),
      wte_(register_module("wte", Rows(config.vocabulary, config.width))),
      wpe_(register_module("wpe", Rows(config.context, config.width))),
      ln_f_(nullptr) {
  torch::nn::ModuleList list;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    blocks_.emplace_back(config);
    list->push_back(blocks_.back().ptr());
  }
  register_module("h", list);
  ln_f_ = register_module("ln_f", Norm(config.width));
}

Tensor TransformerImpl::forward(const Tensor& tokens, const Tensor& tied) {
  const Tensor positions = wpe_->weight().narrow(0, 0, tokens.size(1));       // [T, C]
  Tensor x = drop(embed(tokens, tied) + positions, dropout_, is_training());  // [B, T, C]
  for (auto& block : blocks_) {
    x = block(x);
  }
  return ln_f_->forward(x);
}

Gpt2Impl::Gpt2Impl(const Gpt2Config& config)
    : LanguageModel(config), transformer_(register_module("transformer", Transformer(config))) {
  LOCKSTEP_INVARIANT(config.width % config.heads, ==, 0);
}

Tensor Gpt2Impl::forward(const Tensor& tokens) {
  LOCKSTEP_INVARIANT(tokens.size(1), <=, config().context);
  const Tensor tied = shared_weight(transformer_->token_weight());  // [V, C]
  return torch::linear(transformer_->forward(tokens, tied), tied);  // [B, T, V]
}

}  // namespace lockstep::models
