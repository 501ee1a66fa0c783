#include "bench/train/options.h"
#include "bench/train/rank_options.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using Words = std::vector<std::string>;

TEST(TrainBenchOptions, defaults_are_the_bound_of_small_batches) {
  const TrainQuestion question = parse_train_bench({}).question;
  EXPECT_EQ(title(question), "gpt2-124m f32 1x128");
  EXPECT_EQ(question.ranks, 2);
  EXPECT_EQ(question.threads, 1);
  EXPECT_EQ(question.rounds, 5);
  EXPECT_EQ(question.steps, 6);
  EXPECT_EQ(question.stages, (Words{"apart", "ddp"}));
}

TEST(TrainBenchOptions, peers_add_pytorch) {
  const TrainBenchOptions options =
      parse_train_bench(Words{"--peers", "--python", "/bin/sh", "--stages", "apart", "--json"});
  EXPECT_EQ(options.question.stages, (Words{"apart", kPyTorch, kPyTorchTuned}));
  EXPECT_TRUE(options.json);
}

TEST(TrainBenchOptions, refusals_name_the_option_and_the_fix) {
  const std::vector<std::pair<Words, std::vector<std::string>>> table{
      {{"--stages", "hybrid"}, {"--stages hybrid", "apart, ddp, zero1"}},
      {{"--stages", "single"}, {"--stages single", "apart, ddp, zero1"}},
      {{"--stages", ""}, {"--stages", "commas"}},
      {{"--precision", "f16"}, {"--precision f16", "bf16"}},
      {{"--steps", "1"}, {"--steps", "from 2"}},
      {{"--pairs", "0"}, {"--pairs", "from 1"}},
      {{"--micro-batch", "0"}, {"--micro-batch", "from 1"}},
      {{"--sweep", "bucket"}, {"--sweep", "not built yet"}},
      {{"--plot", "f.svg"}, {"--plot", "not built yet"}},
      {{"--peers", "--python", "/nowhere/python"}, {"--python /nowhere/python", "scripts/setup"}},
      {{"--model"}, {"--model", "needs a value"}},
  };
  for (const auto& [words, parts] : table) {
    try {
      parse_train_bench(words);
      ADD_FAILURE() << words.front() << " was accepted";
    } catch (const UsageError& error) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
            << error.what() << " lacks " << part;
      }
    }
  }
}

TEST(RankOptions, words_read_back_to_the_same_options) {
  RankOptions options;
  options.stage = "apart";
  options.model = "gpt2-tiny";
  options.precision = "bf16";
  options.micro_batch = 3;
  options.sequence = 17;
  options.steps = 9;
  options.threads = 2;
  options.result = "a file";
  EXPECT_EQ(words_of(parse_rank(words_of(options))), words_of(options));
}

TEST(RankOptions, a_result_is_needed) { EXPECT_THROW(parse_rank({}), UsageError); }

}  // namespace
}  // namespace lockstep::bench
