#include "models/configuration.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace lockstep::models {
namespace {

// A Llama of small odd sizes, counted by hand.
TEST(Facts, OfALlamaByHand) {
  LlamaConfig config{.layers = 2,
                     .width = 6,
                     .heads = 4,
                     .key_heads = 2,
                     .head_size = 2,
                     .hidden = 5,
                     .context = 9,
                     .vocabulary = 7,
                     .tied = true};
  // q and o 6·8 each, k and v 6·4 each, three of 6·5, two norms of 6.
  const std::int64_t block = 2 * 48 + 2 * 24 + 3 * 30 + 2 * 6;
  EXPECT_EQ(facts_of(config).parameters, 7 * 6 + 2 * block + 6);
  EXPECT_EQ(facts_of(config).attention_width, 8);
  EXPECT_EQ(facts_of(config).context, 9);
  EXPECT_EQ(facts_of(config).vocabulary, 7);
  EXPECT_EQ(facts_of(config).layers, 2);
  config.tied = false;
  EXPECT_EQ(facts_of(config).parameters, 2 * 7 * 6 + 2 * block + 6);
}

// PaLM's formula by hand: 6 N + 12 L C T per token.
TEST(Flops, ArePaLMsFormula) {
  const ModelFacts facts = facts_of(Gpt2Config{});
  EXPECT_DOUBLE_EQ(flops(facts, 1, 128), 6.0 * 124'439'808 + 12.0 * 12 * 768 * 128);
  EXPECT_DOUBLE_EQ(flops(facts, 1000, 128), 1000 * flops(facts, 1, 128));
}

TEST(Dropout, IsGpt2sAlone) {
  ModelConfig gpt2 = Gpt2Config{};
  set_dropout(gpt2, 0.25);
  EXPECT_EQ(std::get<Gpt2Config>(gpt2).dropout, 0.25);
  ModelConfig llama = LlamaConfig{};
  EXPECT_NO_THROW(set_dropout(llama, 0));
  EXPECT_EQ(test::error_of<UsageError>([&] { set_dropout(llama, 0.25); }),
            "--dropout 0.25: a Llama has no dropout; use --dropout 0, or a GPT-2");
}

}  // namespace
}  // namespace lockstep::models
