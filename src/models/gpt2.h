// GPT-2 (Radford et al. 2019), made of lockstep::Unit blocks.
//
// Parameter names are Hugging Face's (transformer.h.0.attn.c_attn.weight, …, head tied to
// transformer.wte.weight). Matrices lie as torch::nn::Linear keeps them, [out, in]; Hugging Face's
// GPT-2 files hold the four projections of a block transposed, [in, out].
//
// Letters in shapes: B sequences, T tokens of a sequence, C width, H heads, V vocabulary rows.
#pragma once

#include "lockstep/unit.h"

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::models {

struct Gpt2Config {
  std::int64_t layers = 12;
  std::int64_t width = 768;  // C, divisible by heads
  std::int64_t heads = 12;
  std::int64_t context = 1024;  // most tokens of a sequence
  std::int64_t vocabulary = 50257;
  double dropout = 0.0;  // of embeddings, attention weights and residual branches
};

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

// The language model. Parameters are drawn from LibTorch's default generator in registration order.
class Gpt2Impl : public torch::nn::Module {
 public:
  explicit Gpt2Impl(const Gpt2Config& config);
  // tokens i64 [B, T], T ≤ context → logits [B, T, V] in the activations' dtype.
  torch::Tensor forward(const torch::Tensor& tokens);
  // The mean cross entropy of `targets` [B, T] in nats, computed in fp32; a scalar.
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& targets);
  const Gpt2Config& config() const { return config_; }
  // Forward passes since construction.
  std::int64_t forwards() const { return transformer_->forwards(); }

 private:
  Gpt2Config config_;
  Transformer transformer_;
};
TORCH_MODULE(Gpt2);

}  // namespace lockstep::models
