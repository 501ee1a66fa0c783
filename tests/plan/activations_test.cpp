#include "plan/activations.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::plan {
namespace {

constexpr Transformer kGpt2{.family = Family::gpt2,
                            .layers = 12,
                            .width = 768,
                            .heads = 12,
                            .head_size = 64,
                            .hidden = 3072,
                            .vocabulary = 50257,
                            .context = 1024};

Dials dials_of(std::int64_t micro_batch, std::int64_t sequence) {
  Dials dials;
  dials.micro_batch = micro_batch;
  dials.sequence = sequence;
  return dials;
}

// Korthikanti et al. 2022, table 2: s·b·h·(34 + 5·a·s/h) bytes per layer, of which 2·s·b·h are two
// dropout masks and a·s²·b a third; 2·a·s²·b are softmax weights, and as many their dropped ones.
TEST(Activations, of_a_block_are_those_of_the_paper_without_dropout) {
  for (const std::int64_t sequence : {128, 1024}) {
    Dials dials = dials_of(4, sequence);
    dials.flash_attention = false;
    const std::int64_t tokens = 4 * sequence;
    const std::int64_t statistics = tokens * 2 * 8;
    EXPECT_EQ(activations_of(kGpt2, dials).block,
              tokens * (32 * 768 + 2 * 12 * sequence) + statistics);
  }
}

TEST(Activations, flash_attention_keeps_a_sum_per_head_for_the_square) {
  const Dials flash = dials_of(1, 1024);
  Dials plain = flash;
  plain.flash_attention = false;
  EXPECT_EQ(activations_of(kGpt2, plain).block - activations_of(kGpt2, flash).block,
            1024 * 12 * (1024 * 2 - 4));
}

TEST(Activations, peak_is_all_blocks_and_the_loss) {
  const Activations one = activations_of(kGpt2, dials_of(1, 1024));
  EXPECT_EQ(one.kept, 12 * one.block);
  EXPECT_EQ(one.head, 1024 * (2 * 768 * 2 + 8 + 3 * 50257 * 4));
  EXPECT_EQ(one.peak, one.kept + one.head);
  const Activations eight = activations_of(kGpt2, dials_of(8, 1024));
  EXPECT_EQ(eight.peak, 8 * one.peak) << "linear in the micro-batch";
}

TEST(Activations, recomputation_keeps_inputs_and_one_block) {
  Dials dials = dials_of(1, 1024);
  const Activations whole = activations_of(kGpt2, dials);
  dials.recompute = true;
  const Activations again = activations_of(kGpt2, dials);
  EXPECT_EQ(again.kept, 12 * 1024 * 768 * 2);
  EXPECT_EQ(again.block, whole.block);
  EXPECT_LT(again.peak, whole.peak);
  Transformer small = kGpt2;
  small.vocabulary = 16;
  EXPECT_GE(activations_of(small, dials).peak, again.kept + again.block);
}

TEST(Activations, a_llama_keeps_four_widths_queries_and_hidden) {
  const Transformer llama{.family = Family::llama,
                          .layers = 30,
                          .width = 576,
                          .heads = 9,
                          .head_size = 64,
                          .hidden = 1536,
                          .vocabulary = 49152,
                          .context = 8192};
  Dials dials = dials_of(2, 256);
  dials.precision = Precision::f32;
  EXPECT_EQ(activations_of(llama, dials).block,
            2 * 256 * ((4 * 576 + 4 * 576 + 4 * 1536) * 4 + 9 * 4 + 2 * 4));
}

TEST(Activations, too_many_to_count_are_refused) {
  EXPECT_THROW(activations_of(kGpt2, dials_of(1'000'000'000'000, 1024)), UsageError);
}

}  // namespace
}  // namespace lockstep::plan
