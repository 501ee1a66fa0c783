#include "models/configuration_file.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lockstep::models {
namespace {

using nlohmann::json;

json gpt2() {
  return json::parse(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 12, "n_head": 3,
                         "n_positions": 32, "vocab_size": 40, "resid_pdrop": 0.1})");
}

json llama() {
  return json::parse(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 24,
                         "num_attention_heads": 4, "intermediate_size": 40,
                         "max_position_embeddings": 64, "vocab_size": 50})");
}

LlamaConfig llama_of(const json& object) {
  return std::get<LlamaConfig>(parse_configuration(object.dump(), "config.json"));
}

std::string refusal(const json& object) {
  return test::error_of<UsageError>([&] { parse_configuration(object.dump(), "config.json"); });
}

json with(json object, const std::string& key, const json& value) {
  object[key] = value;
  return object;
}

TEST(ConfigurationFile, ReadsGpt2) {
  const ModelConfig config = parse_configuration(gpt2().dump(), "config.json");
  const auto& read = std::get<Gpt2Config>(config);
  EXPECT_EQ(read.layers, 2);
  EXPECT_EQ(read.width, 12);
  EXPECT_EQ(read.heads, 3);
  EXPECT_EQ(read.context, 32);
  EXPECT_EQ(read.vocabulary, 40);
  EXPECT_EQ(read.dropout, 0.0) << "what training drops is not the file's to say";
}

TEST(ConfigurationFile, ReadsLlamaWithTransformersDefaults) {
  const LlamaConfig plain = llama_of(llama());
  EXPECT_EQ(plain.key_heads, 4);
  EXPECT_EQ(plain.head_size, 6);
  EXPECT_EQ(plain.rope_theta, 10000.0);
  EXPECT_EQ(plain.norm_epsilon, 1e-6);
  EXPECT_FALSE(plain.tied);
  json object = with(llama(), "num_key_value_heads", 2);
  object["head_dim"] = 8;
  object["tie_word_embeddings"] = true;
  object["rope_scaling"] = nullptr;
  object["rope_theta"] = 5e5;
  const LlamaConfig told = llama_of(object);
  EXPECT_EQ(told.key_heads, 2);
  EXPECT_EQ(told.head_size, 8);
  EXPECT_EQ(told.rope_theta, 5e5);
  EXPECT_TRUE(told.tied);
  const json parameters{{"rope_type", "default"}, {"rope_theta", 7e5}};
  EXPECT_EQ(llama_of(with(llama(), "rope_parameters", parameters)).rope_theta, 7e5);
}

TEST(ConfigurationFile, ReadsBackWhatItWrites) {
  const LlamaConfig llama_config{.layers = 3,
                                 .width = 20,
                                 .heads = 6,
                                 .key_heads = 2,
                                 .head_size = 10,
                                 .hidden = 7,
                                 .context = 11,
                                 .vocabulary = 13,
                                 .rope_theta = 12345.0,
                                 .norm_epsilon = 3e-6,
                                 .initial_deviation = 0.04,
                                 .tied = false};
  const auto again =
      std::get<LlamaConfig>(parse_configuration(configuration_text(llama_config), "config.json"));
  EXPECT_EQ(configuration_text(again), configuration_text(llama_config));
  EXPECT_EQ(again.head_size, 10);
  EXPECT_EQ(again.initial_deviation, 0.04);
  const Gpt2Config gpt2_config{
      .layers = 3, .width = 20, .heads = 4, .context = 11, .vocabulary = 13};
  const ModelConfig same = parse_configuration(configuration_text(gpt2_config), "config.json");
  EXPECT_EQ(configuration_text(same), configuration_text(gpt2_config));
}

TEST(ConfigurationFile, RefusesWhatWouldComputeSomethingElse) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"activation_function", "relu"},
                                                 {"n_inner", 50},
                                                 {"layer_norm_epsilon", 1e-6},
                                                 {"scale_attn_weights", false},
                                                 {"scale_attn_by_inverse_layer_idx", true},
                                                 {"add_cross_attention", true},
                                                 {"tie_word_embeddings", false}}) {
    EXPECT_EQ(refusal(with(gpt2(), key, value)).find("config.json: " + key + ": expected "), 0u);
  }
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"hidden_act", "gelu"},
                                                 {"attention_bias", true},
                                                 {"mlp_bias", true},
                                                 {"attention_dropout", 0.1},
                                                 {"num_key_value_heads", 3},
                                                 {"head_dim", 7},
                                                 {"rope_scaling", "linear"}}) {
    EXPECT_EQ(refusal(with(llama(), key, value)).find("config.json: " + key + ": expected "), 0u);
  }
  EXPECT_EQ(refusal(with(llama(), "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}})),
            "config.json: rope_type: expected \"default\", the one that is built, found "
            "\"llama3\"");
}

TEST(ConfigurationFile, NamesTheKeyThatIsWrong) {
  EXPECT_EQ(refusal(with(gpt2(), "n_head", 5)),
            "config.json: n_head: expected a divisor of n_embd, 12, found 5");
  EXPECT_EQ(refusal(with(gpt2(), "n_layer", nullptr)),
            "config.json: n_layer: expected a whole number from 1 to 1000000, found nothing");
  EXPECT_NE(refusal(with(gpt2(), "n_layer", "two")).find("found \"two\""), std::string::npos);
  EXPECT_NE(refusal(with(gpt2(), "n_embd", 1e300)).find("n_embd"), std::string::npos);
  EXPECT_NE(refusal(with(llama(), "rms_norm_eps", -1)).find("rms_norm_eps: expected a number"),
            std::string::npos);
  EXPECT_NE(refusal(with(llama(), "tie_word_embeddings", 1)).find("true or false"),
            std::string::npos);
  EXPECT_EQ(refusal(with(gpt2(), "model_type", "mamba")),
            "config.json: model_type: expected \"gpt2\" or \"llama\", found \"mamba\"");
  EXPECT_EQ(test::error_of<UsageError>([] { parse_configuration("[", "c"); }),
            "c: expected a JSON object; is it a config.json?");
}

}  // namespace
}  // namespace lockstep::models
