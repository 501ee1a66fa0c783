#include "models/registry.h"

#include "models/gpt2.h"
#include "models/llama.h"
#include "models/parameter_list.h"

#include <gtest/gtest.h>

namespace lockstep::models {
namespace {

std::int64_t counted(const LanguageModel& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model.parameters()) {
    count += parameter.numel();
  }
  return count;
}

TEST(Registry, ModelsHoldWhatTheirFactsSay) {
  const LlamaConfig odd{.layers = 2,
                        .width = 24,
                        .heads = 6,
                        .key_heads = 2,
                        .head_size = 4,
                        .hidden = 10,
                        .context = 5,
                        .vocabulary = 7,
                        .tied = false};
  for (const ModelConfig& config :
       {config_of("gpt2-tiny", 256), config_of("llama-tiny", 256), ModelConfig(odd),
        ModelConfig(
            Gpt2Config{.layers = 3, .width = 24, .heads = 3, .context = 5, .vocabulary = 7})}) {
    const auto model = make_model(config);
    EXPECT_EQ(counted(*model), facts_of(config).parameters);
    EXPECT_EQ(model->facts().parameters, facts_of(config).parameters);
  }
}

TEST(Registry, MakesTheModelOfTheConfiguration) {
  EXPECT_NE(std::dynamic_pointer_cast<Gpt2Impl>(make_model(config_of("gpt2-tiny", 9))), nullptr);
  EXPECT_NE(std::dynamic_pointer_cast<LlamaImpl>(make_model(config_of("llama-tiny", 9))), nullptr);
}

void expect_only_norms_in_f32(const std::string& name, std::int64_t expected_norms) {
  const auto model = make_model(config_of(name, 256));
  std::int64_t norms = 0;
  for (const auto& item : model->named_parameters()) {
    const bool is_bias =
        item.key().ends_with(".bias") && item.key().find("ln_") == std::string::npos;
    const bool is_norm = item.value().dim() == 1 && !is_bias;
    norms += is_norm ? 1 : 0;
    EXPECT_EQ(keep_f32(item.key()), is_norm) << item.key();
    EXPECT_EQ(decays(item.key(), item.value()), item.value().dim() == 2) << item.key();
  }
  EXPECT_EQ(norms, expected_norms);
}

TEST(Registry, KeepsNormsInFp32AndDecaysMatrices) {
  expect_only_norms_in_f32("gpt2-tiny", 2 * (2 * 4 + 1));
  expect_only_norms_in_f32("llama-tiny", 2 * 4 + 1);
}

}  // namespace
}  // namespace lockstep::models
