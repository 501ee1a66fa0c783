#include "cli/train_options.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"
#include "train/option_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using train::Options;
using Words = std::vector<std::string>;

Options parsed(const Words& words) { return parse_train(words).options; }

// Two options are the same when every field of the table writes the same.
void expect_equal(const Options& a, const Options& b) {
  EXPECT_EQ(train::to_toml(a), train::to_toml(b));
}

const Words kEveryOption{"--ranks",
                         "4",
                         "--stage",
                         "zero3",
                         "--model",
                         "gpt2-124m",
                         "--data",
                         "a # \"b\" \\c'.txt",
                         "--tokenizer",
                         "bytes",
                         "--micro-batch",
                         "3",
                         "--seq",
                         "128",
                         "--accumulate",
                         "2",
                         "--steps",
                         "77",
                         "--seed",
                         "9223372036854775807",
                         "--precision",
                         "bf16",
                         "--dropout",
                         ".1",
                         "--optimizer",
                         "sgd",
                         "--momentum",
                         "0.9",
                         "--lr",
                         "0.1",
                         "--warmup",
                         "0",
                         "--weight-decay",
                         "1e-300",
                         "--clip",
                         "0",
                         "--accumulate-in",
                         "full",
                         "--reshard",
                         "always",
                         "--share-parameters",
                         "--unit-blocks",
                         "2",
                         "--bucket-mb",
                         "0.5",
                         "--overlap",
                         "off",
                         "--recompute",
                         "--algorithm",
                         "direct",
                         "--transport",
                         "shm",
                         "--reproducible",
                         "--threads",
                         "2",
                         "--deadline",
                         "5m",
                         "--device-memory",
                         "1.5GB",
                         "--force",
                         "--checkpoint",
                         "saved",
                         "--checkpoint-every",
                         "10",
                         "--keep",
                         "3",
                         "--resume",
                         "--stop-at",
                         "50",
                         "--eval-every",
                         "5",
                         "--eval-batches",
                         "0",
                         "--sample",
                         "1KB",
                         "--run",
                         "runs/ü",
                         "--report",
                         "r.json",
                         "--trace",
                         "t.json"};

TEST(TrainOptions, every_option_arrives) {
  const Options options = parsed(kEveryOption);
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.stage, Stage::zero3);
  EXPECT_EQ(options.model, "gpt2-124m");
  EXPECT_EQ(options.data, "a # \"b\" \\c'.txt");
  EXPECT_EQ(options.micro_batch, 3);
  EXPECT_EQ(options.sequence, 128);
  EXPECT_EQ(options.accumulate, 2);
  EXPECT_EQ(options.steps, 77);
  EXPECT_EQ(options.seed, 9223372036854775807);
  EXPECT_EQ(options.precision, train::PrecisionName::bf16);
  EXPECT_EQ(options.dropout, 0.1);
  EXPECT_EQ(options.optimizer, train::OptimizerName::sgd);
  EXPECT_EQ(options.momentum, 0.9);
  EXPECT_EQ(options.learning_rate, 0.1);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.weight_decay, 1e-300);
  EXPECT_EQ(options.clip, 0);
  EXPECT_EQ(options.accumulate_in_shard, false);
  EXPECT_EQ(options.unit_blocks, 2);
  EXPECT_EQ(options.bucket_mb, 0.5);
  EXPECT_FALSE(options.overlap);
  EXPECT_TRUE(options.reproducible);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.deadline_s, 300);
  EXPECT_EQ(options.checkpoint, "saved");
  EXPECT_EQ(options.checkpoint_every, 10);
  EXPECT_EQ(options.keep, 3);
  EXPECT_TRUE(options.resume);
  EXPECT_EQ(options.stop_at, 50);
  EXPECT_EQ(options.eval_every, 5);
  EXPECT_EQ(options.eval_batches, 0);
  EXPECT_EQ(options.sample_bytes, 1000);
  EXPECT_EQ(options.run_directory, "runs/ü");
  EXPECT_EQ(options.report, "r.json");
  EXPECT_EQ(options.trace, "t.json");
  EXPECT_EQ(options.reshard, true);
  EXPECT_TRUE(options.share_parameters);
  EXPECT_TRUE(options.recompute);
  EXPECT_EQ(options.device_memory, 1'500'000'000);
  EXPECT_TRUE(options.force);
  for (const train::OptionField& field : train::option_fields()) {
    EXPECT_EQ(std::ranges::count(kEveryOption, "--" + field.name), 1) << field.name;
  }
}

TEST(TrainOptions, nothing_given_is_the_defaults) {
  expect_equal(parsed({}), Options{});
  EXPECT_EQ(parse_train(Words{}, 7).options.ranks, 7);
  EXPECT_EQ(parse_train(Words{"--ranks", "2"}, 7).options.ranks, 2);
}

TEST(TrainOptions, config_toml_reads_back_to_the_same_options) {
  for (const Words& words : {Words{}, kEveryOption, Words{"--stage", "single", "--warmup", "3"}}) {
    const Options options = parsed(words);
    const test::TemporaryFolder folder;
    const std::string path = folder.write("config.toml", train::to_toml(options));
    expect_equal(parsed({"--config", path}), options);
    EXPECT_EQ(parsed({"--config", path}).data, options.data);
    EXPECT_EQ(parsed({"--config", path}).learning_rate, options.learning_rate);
    EXPECT_EQ(parsed({"--config", path}).warmup, options.warmup);
  }
}

TEST(TrainOptions, the_command_line_wins_over_the_config_wherever_it_stands) {
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("test.toml", "steps = 5\nranks = 3\nreproducible = true\noverlap = \"off\"\n");
  for (const Words& words : {Words{"--config", path, "--steps", "9", "--reproducible=false"},
                             Words{"--reproducible=false", "--steps", "9", "--config", path}}) {
    const Options options = parsed(words);
    EXPECT_EQ(options.steps, 9);
    EXPECT_EQ(options.ranks, 3);
    EXPECT_FALSE(options.reproducible);
    EXPECT_FALSE(options.overlap);
  }
}

TEST(TrainOptions, help_shows_every_option_once) {
  const std::string help = parse_train(Words{"--help"}).print;
  for (const train::OptionField& field : train::option_fields()) {
    EXPECT_NE(help.find("--" + field.name + " "), std::string::npos) << field.name;
  }
}

}  // namespace
}  // namespace lockstep::cli
