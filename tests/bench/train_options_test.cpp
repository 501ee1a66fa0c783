#include "bench/train/options.h"
#include "bench/train/rank_options.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using Words = std::vector<std::string>;

Words names_of(const std::vector<Mode>& modes) {
  Words names;
  for (const Mode& mode : modes) {
    names.push_back(mode.name);
  }
  return names;
}

TEST(TrainBenchOptions, defaults_are_the_bound_of_small_batches) {
  const TrainQuestion question = parse_train_bench({}).question;
  EXPECT_EQ(title(question), "gpt2-124m f32 1x128");
  EXPECT_EQ(question.ranks, 2);
  EXPECT_EQ(question.threads, 1);
  EXPECT_EQ(question.rounds, 5);
  EXPECT_EQ(question.steps, 6);
  EXPECT_EQ(names_of(question.modes), (Words{"apart", "ddp"}));
}

TEST(TrainBenchOptions, peers_are_those_that_stages_do_not_name) {
  const TrainBenchOptions options = parse_train_bench(
      Words{"--peers", "--python", "/bin/sh", "--stages", "apart,pytorch-ddp", "--json"});
  EXPECT_EQ(names_of(options.question.modes), (Words{"apart", "pytorch-ddp"}));
  EXPECT_EQ(names_of(options.peers),
            (Words{kPyTorch, kPyTorchTuned, "pytorch-zero1", "pytorch-fsdp2", "deepspeed-zero1",
                   "deepspeed-zero2", "deepspeed-zero3"}));
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(parse_train_bench({}).peers.empty());
}

TEST(TrainBenchOptions, a_sweep_turns_the_named_stages_or_its_own) {
  EXPECT_EQ(names_of(parse_train_bench(Words{"--sweep", "overlap"}).question.modes),
            (Words{"apart", "ddp overlap on", "ddp overlap off"}));
  EXPECT_EQ(names_of(parse_train_bench(Words{"--sweep", "overlap", "--stages", "zero3,threads"})
                         .question.modes),
            (Words{"zero3 overlap on", "zero3 overlap off", "threads"}));
}

TEST(TrainBenchOptions, help_needs_nothing_else_to_be_right) {
  EXPECT_NE(parse_train_bench(Words{"--help"}).print.find("pytorch-fsdp2"), std::string::npos);
}

TEST(TrainBenchOptions, refusals_name_the_option_and_the_fix) {
  const std::vector<std::pair<Words, std::vector<std::string>>> table{
      {{"--stages", "hybrid"}, {"--stages hybrid", "apart, threads, ddp, zero1"}},
      {{"--stages", "single"}, {"--stages single", "apart, threads, ddp, zero1"}},
      {{"--stages", ""}, {"--stages", "commas"}},
      {{"--precision", "f16"}, {"--precision f16", "bf16"}},
      {{"--steps", "1"}, {"--steps", "from 2"}},
      {{"--pairs", "0"}, {"--pairs", "from 1"}},
      {{"--micro-batch", "0"}, {"--micro-batch", "from 1"}},
      {{"--stages", "ddp,ddp"}, {"--stages", "ddp twice"}},
      {{"--sweep", "prefetch"}, {"--sweep prefetch", "not built yet"}},
      {{"--sweep", "unit", "--stages", "ddp"}, {"--sweep unit", "--stages apart,zero3"}},
      {{"--plot", "/nowhere/f.svg"}, {"--plot /nowhere/f.svg", "make it first"}},
      {{"--stages", "pytorch-ddp", "--python", "/nowhere/python"}, {"--python", "scripts/setup"}},
      {{"--stages", "pytorch-ddp", "--python", "/bin/sh", "--model", "llama-tiny"},
       {"--model llama-tiny", "GPT-2 only"}},
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
  EXPECT_EQ(words_of(options).size(), 16u);
  options.batches = 4;
  options.dials = {.bucket_mb = 0.5, .unit_blocks = 3, .overlap = false};
  EXPECT_EQ(words_of(options).size(), 24u);
  EXPECT_EQ(words_of(parse_rank(words_of(options))), words_of(options));
}

TEST(RankOptions, overlap_is_on_or_off) {
  EXPECT_THROW(parse_rank(Words{"--result", "f", "--overlap", "maybe"}), UsageError);
}

TEST(RankOptions, a_result_is_needed) { EXPECT_THROW(parse_rank({}), UsageError); }

}  // namespace
}  // namespace lockstep::bench
