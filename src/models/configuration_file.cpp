#include "models/configuration_file.h"

#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <initializer_list>
#include <iterator>

namespace lockstep::models {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::int64_t kMostRows = 1'000'000;  // keeps products of sizes from overflowing

// The keys of one file, each checked as it is read. An absent key and a null are the same.
class Keys {
 public:
  Keys(const json& object, const std::string& path) : object_(object), path_(path) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
    throw UsageError(path_ + ": " + key + ": expected " + expected + ", found " +
                     (has(key) ? object_.at(key).dump() : "nothing"));
  }
  bool has(const std::string& key) const {
    return object_.contains(key) && !object_.at(key).is_null();
  }
  const json& at(const std::string& key) const { return object_.at(key); }

  std::int64_t size(const std::string& key) const {
    const json value = has(key) ? object_.at(key) : json();
    if (!value.is_number_integer() || value.get<double>() < 1 ||
        value.get<double>() > static_cast<double>(kMostRows)) {
      refuse(key, "a whole number from 1 to " + std::to_string(kMostRows));
    }
    return value.get<std::int64_t>();
  }
  std::int64_t size(const std::string& key, std::int64_t otherwise) const {
    return has(key) ? size(key) : otherwise;
  }
  double positive(const std::string& key, double otherwise) const {
    if (!has(key)) {
      return otherwise;
    }
    if (!object_.at(key).is_number() || !(object_.at(key).get<double>() > 0)) {
      refuse(key, "a number above 0");
    }
    return object_.at(key).get<double>();
  }
  bool truth(const std::string& key, bool otherwise) const {
    if (has(key) && !object_.at(key).is_boolean()) {
      refuse(key, "true or false");
    }
    return has(key) ? object_.at(key).get<bool>() : otherwise;
  }
  // `key` is absent or `built`, the one value that the model computes with.
  void only(const std::string& key, const json& built) const {
    if (has(key) && object_.at(key) != built) {
      refuse(key, built.dump() + ", the one that is built");
    }
  }

 private:
  const json& object_;
  const std::string& path_;
};

Gpt2Config gpt2_of(const Keys& keys) {
  const Gpt2Config config{.layers = keys.size("n_layer"),
                          .width = keys.size("n_embd"),
                          .heads = keys.size("n_head"),
                          .context = keys.size("n_positions"),
                          .vocabulary = keys.size("vocab_size")};
  keys.only("n_inner", 4 * config.width);
  keys.only("activation_function", "gelu_new");
  keys.only("layer_norm_epsilon", 1e-5);
  keys.only("scale_attn_weights", true);
  keys.only("scale_attn_by_inverse_layer_idx", false);
  keys.only("add_cross_attention", false);
  keys.only("tie_word_embeddings", true);
  if (config.width % config.heads != 0) {
    keys.refuse("n_head", "a divisor of n_embd, " + std::to_string(config.width));
  }
  return config;
}

// The base of the rotary angles; transformers before 5 has it at the top, later ones in an object.
double rope_theta_of(const Keys& keys, const std::string& path) {
  double theta = keys.positive("rope_theta", 10000.0);
  for (const char* const name : {"rope_parameters", "rope_scaling"}) {
    if (!keys.has(name)) {
      continue;
    }
    if (!keys.at(name).is_object()) {
      keys.refuse(name, "an object");
    }
    const Keys inner(keys.at(name), path);
    inner.only("rope_type", "default");
    inner.only("type", "default");
    inner.only("partial_rotary_factor", 1.0);
    theta = inner.positive("rope_theta", theta);
  }
  return theta;
}

void check_heads(const Keys& keys, const LlamaConfig& config) {
  if (config.heads % config.key_heads != 0) {
    keys.refuse("num_key_value_heads",
                "a divisor of num_attention_heads, " + std::to_string(config.heads));
  }
  if (config.head_size % 2 != 0) {
    keys.refuse("head_dim", "an even number (rotary angles turn pairs)");
  }
}

LlamaConfig llama_of(const Keys& keys, const std::string& path) {
  LlamaConfig config{.layers = keys.size("num_hidden_layers"),
                     .width = keys.size("hidden_size"),
                     .heads = keys.size("num_attention_heads"),
                     .hidden = keys.size("intermediate_size"),
                     .context = keys.size("max_position_embeddings"),
                     .vocabulary = keys.size("vocab_size"),
                     .rope_theta = rope_theta_of(keys, path),
                     .norm_epsilon = keys.positive("rms_norm_eps", 1e-6),
                     .initial_deviation = keys.positive("initializer_range", 0.02),
                     .tied = keys.truth("tie_word_embeddings", false)};
  config.key_heads = keys.size("num_key_value_heads", config.heads);
  if (!keys.has("head_dim") && config.width % config.heads != 0) {
    keys.refuse("num_attention_heads", "a divisor of hidden_size, " + std::to_string(config.width));
  }
  config.head_size = keys.size("head_dim", config.width / config.heads);
  check_heads(keys, config);
  keys.only("hidden_act", "silu");
  keys.only("attention_bias", false);
  keys.only("mlp_bias", false);
  keys.only("attention_dropout", 0.0);
  return config;
}

ordered_json json_of(const Gpt2Config& config) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", config.vocabulary},
          {"n_positions", config.context},
          {"n_embd", config.width},
          {"n_layer", config.layers},
          {"n_head", config.heads},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"initializer_range", 0.02},
          {"tie_word_embeddings", true}};
}

ordered_json json_of(const LlamaConfig& config) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", config.vocabulary},
          {"max_position_embeddings", config.context},
          {"hidden_size", config.width},
          {"intermediate_size", config.hidden},
          {"num_hidden_layers", config.layers},
          {"num_attention_heads", config.heads},
          {"num_key_value_heads", config.key_heads},
          {"head_dim", config.head_size},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"rms_norm_eps", config.norm_epsilon},
          {"rope_theta", config.rope_theta},
          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", config.rope_theta}}},
          {"initializer_range", config.initial_deviation},
          {"tie_word_embeddings", config.tied}};
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(path +
                     ": can't be opened; a model's folder holds config.json and *.safetensors");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// With the dtype under the name of today and that of transformers before 5.
std::string text_in_f32(ordered_json object) {
  object["dtype"] = "float32";
  object["torch_dtype"] = "float32";
  return object.dump(2) + "\n";
}

}  // namespace

ModelConfig read_configuration(const std::string& path) {
  return parse_configuration(contents_of(path), path);
}

ModelConfig parse_configuration(const std::string& text, const std::string& path) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    throw UsageError(path + ": expected a JSON object; is it a config.json?");
  }
  const Keys keys(object, path);
  const json type = keys.has("model_type") ? keys.at("model_type") : json();
  if (type == "gpt2") {
    return gpt2_of(keys);
  }
  if (type == "llama") {
    return llama_of(keys, path);
  }
  keys.refuse("model_type", "\"gpt2\" or \"llama\"");
}

std::string in_f32(const std::string& path) {
  return text_in_f32(ordered_json::parse(contents_of(path)));
}

std::string configuration_text(const ModelConfig& config) {
  return text_in_f32(std::visit([](const auto& one) { return json_of(one); }, config));
}

}  // namespace lockstep::models
