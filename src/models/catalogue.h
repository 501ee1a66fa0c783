// The models that the command line knows: by name, as a folder in Hugging Face's layout, or as such
// a folder's config.json alone, of which a model with fresh weights is made. No LibTorch here.
#pragma once

#include "models/configuration.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::models {

// gpt2-tiny and llama-tiny (their vocabulary is the tokenizer's), gpt2-124m, gpt2-350m and
// gpt2-774m (50,257 rows whatever the tokenizer), llama-135m (SmolLM2-135M's shape, 49,152 rows).
std::vector<std::string> names();

// Whether `model` is a folder rather than a name.
bool is_folder(const std::string& model);

// The config.json that describes `config`, which config_of(model) gave, with weights in f32: of a
// folder or a file its own text, special tokens and all.
std::string configuration_text(const std::string& model, const ModelConfig& config);

// The configuration of a name, of a folder's config.json or of a config.json.
// `tokenizer_vocabulary`: 0 while it is not known; a model that takes its vocabulary from it then
// has none. Throws UsageError listing the names when `model` is neither, and when the tokenizer has
// more tokens than the model rows.
ModelConfig config_of(const std::string& model, std::int64_t tokenizer_vocabulary);

}  // namespace lockstep::models
