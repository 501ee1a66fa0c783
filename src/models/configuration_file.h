// config.json as Hugging Face's transformers writes and reads it, for model types gpt2 and llama.
// No LibTorch here.
#pragma once

#include "models/configuration.h"

#include <string>

namespace lockstep::models {

// The configuration in a config.json. What would change the function that the model computes and is
// not built (other activations, biases of a Llama, rope scaling, …) is refused; what only concerns
// training or generation (dropout, special tokens, …) is passed over. Throws UsageError in one line
// naming file, key, what was expected and found.
ModelConfig read_configuration(const std::string& path);

// The same from the file's text; `path` is for messages.
ModelConfig parse_configuration(const std::string& text, const std::string& path);

// The text of a config.json that read_configuration() takes, changed to say that weights are in
// f32.
std::string in_f32(const std::string& path);

// The config.json of a model whose weights are in f32; parse_configuration() reads it back.
std::string configuration_text(const ModelConfig& config);

}  // namespace lockstep::models
