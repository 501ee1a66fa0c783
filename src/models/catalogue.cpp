#include "models/catalogue.h"

#include "lockstep/error.h"
#include "models/configuration_file.h"

#include <system_error>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace lockstep::models {
namespace {

struct Entry {
  std::string_view name;
  ModelConfig config;  // vocabulary 0: the tokenizer's
};

const std::array kModels{
    Entry{"gpt2-tiny",
          Gpt2Config{.layers = 4, .width = 128, .heads = 4, .context = 256, .vocabulary = 0}},
    Entry{"gpt2-124m", Gpt2Config{.layers = 12, .width = 768, .heads = 12}},
    Entry{"gpt2-350m", Gpt2Config{.layers = 24, .width = 1024, .heads = 16}},
    Entry{"gpt2-774m", Gpt2Config{.layers = 36, .width = 1280, .heads = 20}},
    Entry{"llama-tiny", LlamaConfig{.layers = 4,
                                    .width = 128,
                                    .heads = 4,
                                    .key_heads = 2,
                                    .head_size = 32,
                                    .hidden = 384,
                                    .context = 256,
                                    .vocabulary = 0}},
    Entry{"llama-135m", LlamaConfig{.rope_theta = 100000.0, .initial_deviation = 1.0 / 24.0}},
};

std::string listed() {
  std::string text;
  for (const Entry& entry : kModels) {
    text += (text.empty() ? "" : ", ") + std::string(entry.name);
  }
  return text;
}

ModelConfig named(const std::string& model) {
  const auto* const found = std::ranges::find(kModels, model, &Entry::name);
  if (found == kModels.end()) {
    throw UsageError("--model " + model + ": unknown; use one of " + listed() +
                     ", a folder with config.json and safetensors, or a config.json alone");
  }
  return found->config;
}

// Empty for a name.
std::string configuration_file_of(const std::string& model) {
  if (is_folder(model)) {
    return model + "/config.json";
  }
  std::error_code ignored;
  return model.ends_with(".json") && std::filesystem::is_regular_file(model, ignored)
             ? model
             : std::string();
}

std::int64_t& vocabulary_of(ModelConfig& config) {
  return std::visit([](auto& one) -> std::int64_t& { return one.vocabulary; }, config);
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Entry& entry : kModels) {
    result.emplace_back(entry.name);
  }
  return result;
}

bool is_folder(const std::string& model) {
  const auto* const found = std::ranges::find(kModels, model, &Entry::name);
  std::error_code ignored;
  return found == kModels.end() && std::filesystem::is_directory(model, ignored);
}

ModelConfig config_of(const std::string& model, std::int64_t tokenizer_vocabulary) {
  const std::string file = configuration_file_of(model);
  ModelConfig config = file.empty() ? named(model) : read_configuration(file);
  std::int64_t& rows = vocabulary_of(config);
  if (rows == 0) {
    rows = tokenizer_vocabulary;
  }
  if (rows < tokenizer_vocabulary) {
    throw UsageError("--tokenizer: has " + std::to_string(tokenizer_vocabulary) + " tokens, " +
                     model + " has rows for " + std::to_string(rows) +
                     "; choose a smaller tokenizer or another --model");
  }
  return config;
}

std::string configuration_text(const std::string& model, const ModelConfig& config) {
  const std::string file = configuration_file_of(model);
  return file.empty() ? configuration_text(config) : in_f32(file);
}

}  // namespace lockstep::models
