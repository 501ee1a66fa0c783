#include "models/registry.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace lockstep::models {
namespace {

std::int64_t counted(Gpt2& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model->parameters()) {
    count += parameter.numel();
  }
  return count;
}

TEST(Registry, KnowsItsModelsParameterCounts) {
  EXPECT_EQ(parameter_count(config_of("gpt2-tiny", 256)), 858'880);
  EXPECT_EQ(parameter_count(config_of("gpt2-124m", 256)), 124'439'808);
  EXPECT_EQ(parameter_count(config_of("gpt2-350m", 256)), 354'823'168);
  EXPECT_EQ(parameter_count(config_of("gpt2-774m", 256)), 774'030'080);
}

TEST(Registry, CountsWhatTheModelHolds) {
  Gpt2 tiny(config_of("gpt2-tiny", 256));
  EXPECT_EQ(counted(tiny), parameter_count(tiny->config()));
  Gpt2 odd(Gpt2Config{.layers = 3, .width = 24, .heads = 3, .context = 5, .vocabulary = 7});
  EXPECT_EQ(counted(odd), parameter_count(odd->config()));
}

TEST(Registry, GivesTheTinyModelTheTokenizersVocabulary) {
  EXPECT_EQ(config_of("gpt2-tiny", 256).vocabulary, 256);
  EXPECT_EQ(config_of("gpt2-tiny", 1000).vocabulary, 1000);
  EXPECT_EQ(config_of("gpt2-124m", 256).vocabulary, 50257);
}

TEST(Registry, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(test::error_of<UsageError>([] { config_of("gpt3", 256); }),
            "--model gpt3: unknown; expected one of gpt2-tiny, gpt2-124m, gpt2-350m, gpt2-774m");
  EXPECT_EQ(test::error_of<UsageError>([] { config_of("gpt2-124m", 50258); }),
            "--tokenizer: has 50258 tokens, gpt2-124m has rows for 50257; choose a smaller "
            "tokenizer or another --model");
}

TEST(Registry, KeepsNormsInFp32AndDecaysMatrices) {
  Gpt2 model(config_of("gpt2-tiny", 256));
  std::int64_t norms = 0;
  for (const auto& item : model->named_parameters()) {
    const bool is_norm = item.key().find(".ln_") != std::string::npos;
    norms += is_norm ? 1 : 0;
    EXPECT_EQ(keep_f32(item.key()), is_norm) << item.key();
    const bool is_vector = is_norm || item.key().ends_with(".bias");
    EXPECT_EQ(decays(item.key(), item.value()), !is_vector) << item.key();
  }
  EXPECT_EQ(norms, 2 * (2 * 4 + 1));
}

// PaLM's formula by hand: 6 N + 12 L C T per token.
TEST(Registry, CountsOperations) {
  const Gpt2Config config = config_of("gpt2-124m", 256);
  EXPECT_DOUBLE_EQ(flops(config, 1, 128), 6.0 * 124'439'808 + 12.0 * 12 * 768 * 128);
  EXPECT_DOUBLE_EQ(flops(config, 1000, 128), 1000 * flops(config, 1, 128));
}

}  // namespace
}  // namespace lockstep::models
