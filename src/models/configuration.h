// What a model is before it is one: its shape, and what follows from that by formulas alone. No
// LibTorch here, so that a command line can be checked in milliseconds.
#pragma once

#include <cstdint>
#include <variant>

namespace lockstep::models {

struct Gpt2Config {
  std::int64_t layers = 12;
  std::int64_t width = 768;  // C, divisible by heads
  std::int64_t heads = 12;
  std::int64_t context = 1024;  // most tokens of a sequence
  std::int64_t vocabulary = 50257;
  double dropout = 0.0;  // of embeddings, attention weights and residual branches
};

struct LlamaConfig {
  std::int64_t layers = 30;
  std::int64_t width = 576;         // C
  std::int64_t heads = 9;           // of queries
  std::int64_t key_heads = 3;       // of keys and values; divides heads
  std::int64_t head_size = 64;      // D, even
  std::int64_t hidden = 1536;       // width between the projections of the MLP
  std::int64_t context = 8192;      // most tokens of a sequence
  std::int64_t vocabulary = 49152;  // V
  double rope_theta = 10000.0;      // base of the rotary angles
  double norm_epsilon = 1e-5;       // added to the mean of squares
  double initial_deviation = 0.02;  // of fresh matrices
  bool tied = true;                 // the head is the embedding
};

using ModelConfig = std::variant<Gpt2Config, LlamaConfig>;

// What formulas of memory and speed need to know of a model.
struct ModelFacts {
  std::int64_t parameters = 0;  // elements, a tied matrix counted once
  std::int64_t layers = 0;
  std::int64_t attention_width = 0;  // heads × head size
  std::int64_t context = 0;
  std::int64_t vocabulary = 0;
};
ModelFacts facts_of(const ModelConfig& config);

// Makes `dropout` the model's. Throws UsageError when the model has none and it is not 0.
void set_dropout(ModelConfig& config, double dropout);

// Floating-point operations of forward and backward over `tokens` tokens in sequences of
// `sequence`: tokens × (6 N + 12 L C T), N all parameters, C the attention's width (Chowdhery et
// al. 2022, PaLM, appendix B). Causal attention is counted as full attention there, and here.
double flops(const ModelFacts& facts, std::int64_t tokens, std::int64_t sequence);

}  // namespace lockstep::models
