// The models that the command line knows by name.
#pragma once

#include "models/gpt2.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::models {

// gpt2-tiny (its vocabulary is the tokenizer's), gpt2-124m, gpt2-350m, gpt2-774m (50,257 rows
// whatever the tokenizer).
std::vector<std::string> names();

// Throws UsageError listing the names when `model` is none of them, and when the tokenizer has more
// tokens than the model rows.
Gpt2Config config_of(const std::string& model, std::int64_t tokenizer_vocabulary);

// Elements of all parameters, the tied matrix counted once.
std::int64_t parameter_count(const Gpt2Config& config);

// Norms stay in fp32 under bf16_mixed: their gradients are sums over all tokens.
bool keep_f32(const std::string& name);

// Matrices and embeddings decay, biases and norms do not (as GPT-2 and GPT-3 were trained).
bool decays(const std::string& name, const torch::Tensor& parameter);

// Floating-point operations of forward and backward over `tokens` tokens in sequences of
// `sequence`: tokens × (6 N + 12 L C T), N all parameters (Chowdhery et al. 2022, PaLM, appendix
// B). Causal attention is counted as full attention there, and here.
double flops(const Gpt2Config& config, std::int64_t tokens, std::int64_t sequence);

}  // namespace lockstep::models
