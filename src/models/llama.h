// Llama (Touvron et al. 2023), made of lockstep::Unit blocks: RMS norms, rotary positions, grouped
// heads (Ainslie et al. 2023), SwiGLU (Shazeer 2020), no biases, no dropout.
//
// Parameter names and layout are Hugging Face's (model.layers.0.self_attn.q_proj.weight, …,
// lm_head.weight unless the head is tied to model.embed_tokens.weight).
//
// Letters in shapes: B sequences, T tokens of a sequence, C width, H heads, D elements of a head,
// V vocabulary rows.
#pragma once

#include "lockstep/unit.h"
#include "models/language_model.h"
#include "models/rotary.h"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace lockstep::models {

// A weight [out, in] alone, drawn from N(0, deviation): the projection y = x Wᵀ, or the rows of an
// embedding.
class MatrixImpl : public torch::nn::Module {
 public:
  MatrixImpl(std::int64_t out, std::int64_t in, double deviation);
  torch::Tensor forward(const torch::Tensor& x);
  const torch::Tensor& weight() const { return weight_; }

 private:
  torch::Tensor weight_;
};
TORCH_MODULE(Matrix);

// Normalisation over C (models/rms_norm.h).
class LlamaNormImpl : public torch::nn::Module {
 public:
  explicit LlamaNormImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  double epsilon_;
  torch::Tensor weight_;
};
TORCH_MODULE(LlamaNorm);

class LlamaAttentionImpl : public torch::nn::Module {
 public:
  explicit LlamaAttentionImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const RotaryAngles& angles);  // [B, T, C]

 private:
  // [B, T, heads·D] → [B, heads, T, D]
  torch::Tensor by_head(const torch::Tensor& x) const;
  // [B, key heads, T, D] → [B, H, T, D]: each of them for its group of query heads.
  torch::Tensor for_each_query(const torch::Tensor& x) const;

  std::int64_t heads_;
  std::int64_t head_size_;
  Matrix q_proj_{nullptr};
  Matrix k_proj_{nullptr};
  Matrix v_proj_{nullptr};
  Matrix o_proj_{nullptr};
};
TORCH_MODULE(LlamaAttention);

class LlamaMlpImpl : public torch::nn::Module {
 public:
  explicit LlamaMlpImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& x);  // [B, T, C] → [B, T, C]

 private:
  Matrix gate_proj_;
  Matrix up_proj_;
  Matrix down_proj_;
};
TORCH_MODULE(LlamaMlp);

class LlamaBlockImpl : public torch::nn::Module {
 public:
  explicit LlamaBlockImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const RotaryAngles& angles);  // [B, T, C]

 private:
  LlamaNorm input_layernorm_;
  LlamaAttention self_attn_;
  LlamaNorm post_attention_layernorm_;
  LlamaMlp mlp_;
};
TORCH_MODULE(LlamaBlock);

class LlamaBodyImpl : public torch::nn::Module {
 public:
  explicit LlamaBodyImpl(const LlamaConfig& config);
  // tokens i64 [B, T], `embedding` the weight of embed_tokens as shared_weight() gives it
  // → [B, T, C]
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& embedding);
  const torch::Tensor& token_weight() const { return embed_tokens_->weight(); }  // [V, C]
  std::int64_t forwards() const { return layers_.front()->forwards(); }

 private:
  std::int64_t head_size_;
  double rope_theta_;
  Matrix embed_tokens_;
  std::vector<Unit<LlamaBlock>> layers_;
  LlamaNorm norm_;
};
TORCH_MODULE(LlamaBody);

class LlamaImpl : public LanguageModel {
 public:
  explicit LlamaImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& tokens) override;
  std::int64_t forwards() const override { return model_->forwards(); }
  const LlamaConfig& config() const { return std::get<LlamaConfig>(configuration()); }

 private:
  LlamaBody model_;
  Matrix lm_head_;  // empty when tied
};
TORCH_MODULE(Llama);

}  // namespace lockstep::models
