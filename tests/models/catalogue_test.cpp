#include "models/catalogue.h"

#include "lockstep/error.h"
#include "models/configuration_file.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace lockstep::models {
namespace {

std::int64_t parameters_of(const std::string& model) {
  return facts_of(config_of(model, 256)).parameters;
}

TEST(Catalogue, KnowsItsModelsParameterCounts) {
  EXPECT_EQ(parameters_of("gpt2-tiny"), 858'880);
  EXPECT_EQ(parameters_of("gpt2-124m"), 124'439'808);
  EXPECT_EQ(parameters_of("gpt2-350m"), 354'823'168);
  EXPECT_EQ(parameters_of("gpt2-774m"), 774'030'080);
  EXPECT_EQ(parameters_of("llama-135m"), 134'515'008);  // SmolLM2-135M's
  EXPECT_EQ(parameters_of("llama-tiny"),
            256 * 128 + 4 * (2 * 128 + 3 * 128 * 128 + 3 * 128 * 384) + 128);
  EXPECT_EQ(names().size(), 6u);
}

TEST(Catalogue, KnowsContextsBeforeTheTokenizer) {
  EXPECT_EQ(facts_of(config_of("gpt2-tiny", 0)).context, 256);
  EXPECT_EQ(facts_of(config_of("gpt2-774m", 0)).context, 1024);
  EXPECT_EQ(facts_of(config_of("llama-tiny", 0)).context, 256);
  EXPECT_EQ(facts_of(config_of("llama-135m", 0)).context, 8192);
}

TEST(Catalogue, GivesTheTinyModelsTheTokenizersVocabulary) {
  for (const char* const tiny : {"gpt2-tiny", "llama-tiny"}) {
    EXPECT_EQ(facts_of(config_of(tiny, 256)).vocabulary, 256);
    EXPECT_EQ(facts_of(config_of(tiny, 1000)).vocabulary, 1000);
  }
  EXPECT_EQ(facts_of(config_of("gpt2-124m", 256)).vocabulary, 50257);
  EXPECT_EQ(facts_of(config_of("llama-135m", 256)).vocabulary, 49152);
}

TEST(Catalogue, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(test::error_of<UsageError>([] { config_of("gpt3", 256); }),
            "--model gpt3: unknown; use one of gpt2-tiny, gpt2-124m, gpt2-350m, gpt2-774m, "
            "llama-tiny, llama-135m, a folder with config.json and safetensors, or a config.json "
            "alone");
  EXPECT_EQ(test::error_of<UsageError>([] { config_of("gpt2-124m", 50258); }),
            "--tokenizer: has 50258 tokens, gpt2-124m has rows for 50257; choose a smaller "
            "tokenizer or another --model");
}

TEST(Catalogue, TakesFoldersByTheirConfigJson) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(is_folder(folder.path()));
  EXPECT_FALSE(is_folder("gpt2-tiny"));
  EXPECT_FALSE(is_folder(folder.file("absent")));
  EXPECT_EQ(test::error_of<UsageError>([&] { config_of(folder.path(), 0); }),
            folder.file("config.json") +
                ": can't be opened; a model's folder holds config.json and *.safetensors");
  folder.write("config.json", configuration_text(LlamaConfig{.vocabulary = 300}));
  EXPECT_EQ(facts_of(config_of(folder.path(), 256)).vocabulary, 300);
  EXPECT_NE(test::error_of<UsageError>([&] { config_of(folder.path(), 301); }).find("rows for 300"),
            std::string::npos);
}

// A shape of one's own, for fresh weights.
TEST(Catalogue, TakesAConfigJsonAlone) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("small.json", configuration_text(LlamaConfig{.vocabulary = 300}));
  EXPECT_FALSE(is_folder(file));
  const ModelConfig config = config_of(file, 256);
  EXPECT_EQ(facts_of(config).vocabulary, 300);
  EXPECT_EQ(configuration_text(file, config), in_f32(file));
  EXPECT_NE(test::error_of<UsageError>([&] {
              config_of(folder.file("absent.json"), 0);
            }).find("absent.json: unknown; use one of"),
            std::string::npos);
}

TEST(Catalogue, KeepsWhatAFoldersConfigJsonSaysBesides) {
  const test::TemporaryFolder folder;
  folder.write("config.json",
               R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 2, "n_positions": 3,
                   "vocab_size": 5, "eos_token_id": 2, "torch_dtype": "bfloat16"})");
  const std::string text = configuration_text(folder.path(), config_of(folder.path(), 0));
  EXPECT_NE(text.find("\"eos_token_id\": 2"), std::string::npos) << text;
  EXPECT_NE(text.find("\"torch_dtype\": \"float32\""), std::string::npos) << text;
  EXPECT_EQ(facts_of(parse_configuration(text, "text")).vocabulary, 5);
  const ModelConfig tiny = config_of("gpt2-tiny", 256);
  EXPECT_EQ(configuration_text("gpt2-tiny", tiny), configuration_text(tiny));
}

}  // namespace
}  // namespace lockstep::models
