// GPT-2 (Radford et al. 2019), made of lockstep::Unit blocks.
//
// Parameter names are Hugging Face's (transformer.h.0.attn.c_attn.weight, …, head tied to
// transformer.wte.weight). Matrices lie as torch::nn::Linear keeps them, [out, in]; Hugging Face's
// GPT-2 files hold the four projections of a block transposed, [in, out].
//
// Letters in shapes: B sequences, T tokens of a sequence, C width, H heads, V vocabulary rows.
#pragma once

#include "lockstep/unit.h"
#include "models/language_model.h"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace lockstep::models {

// y = x Wᵀ + b; weight [out, in].
class ProjectionImpl : public torch::nn::Module {
 public:
  // Draws weight from N(0, deviation), sets bias to zero.
  ProjectionImpl(std::int64_t in, std::int64_t out, double deviation);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor weight_;
  torch::Tensor bias_;
};
TORCH_MODULE(Projection);

// Layer normalisation over C (models/layer_norm.h).
class NormImpl : public torch::nn::Module {
 public:
  explicit NormImpl(std::int64_t width);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor weight_;
  torch::Tensor bias_;
};
TORCH_MODULE(Norm);

class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Gpt2Config& config);
  torch::Tensor forward(const torch::Tensor& x);  // [B, T, C] → [B, T, C]

 private:
  std::int64_t heads_;
  double dropout_;
  Projection c_attn_;
  Projection c_proj_;
};
TORCH_MODULE(Attention);

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const Gpt2Config& config);
  torch::Tensor forward(const torch::Tensor& x);  // [B, T, C] → [B, T, C]

 private:
  double dropout_;
  Projection c_fc_;
  Projection c_proj_;
};
TORCH_MODULE(Mlp);

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const Gpt2Config& config);
  torch::Tensor forward(const torch::Tensor& x);  // [B, T, C] → [B, T, C]

 private:
  Norm ln_1_;
  Attention attn_;
  Norm ln_2_;
  Mlp mlp_;
};
TORCH_MODULE(Block);

// The rows of an embedding, [rows, C].
class RowsImpl : public torch::nn::Module {
 public:
  // Draws from N(0, 0.02).
  RowsImpl(std::int64_t rows, std::int64_t width);
  const torch::Tensor& weight() const { return weight_; }

 private:
  torch::Tensor weight_;
};
TORCH_MODULE(Rows);

class TransformerImpl : public torch::nn::Module {
 public:
  explicit TransformerImpl(const Gpt2Config& config);
  // tokens i64 [B, T], `tied` the weight of wte as shared_weight() gives it → [B, T, C]
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& tied);
  const torch::Tensor& token_weight() const { return wte_->weight(); }  // [V, C]
  std::int64_t forwards() const { return blocks_.front()->forwards(); }

 private:
  double dropout_;
  Rows wte_;  // [V, C]
  Rows wpe_;  // [context, C]
  std::vector<Unit<Block>> blocks_;
  Norm ln_f_;
};
TORCH_MODULE(Transformer);

class Gpt2Impl : public LanguageModel {
 public:
  explicit Gpt2Impl(const Gpt2Config& config);
  torch::Tensor forward(const torch::Tensor& tokens) override;
  std::int64_t forwards() const override { return transformer_->forwards(); }
  const Gpt2Config& config() const { return std::get<Gpt2Config>(configuration()); }

 private:
  Transformer transformer_;
};
TORCH_MODULE(Gpt2);

}  // namespace lockstep::models
