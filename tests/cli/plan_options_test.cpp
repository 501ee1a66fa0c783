#include "cli/plan_options.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

plan::PlanQuery parsed(Words words) { return parse_plan(words).query; }

TEST(PlanOptions, defaults_are_8_ranks_of_h100_in_bf16) {
  const plan::PlanQuery query = parsed({"--params", "8e9"});
  EXPECT_EQ(query.parameters, 8'000'000'000);
  EXPECT_EQ(query.ranks, 8);
  EXPECT_EQ(query.hardware.name, "h100");
  EXPECT_EQ(query.precision, plan::Precision::bf16);
  EXPECT_EQ(query.optimizer_vectors, 2);
  EXPECT_EQ(query.sequence, 2048);
  EXPECT_EQ(parse_plan(Words{"--params", "8B"}).form, PlanForm::table);
}

TEST(PlanOptions, counts_and_bytes_are_read_with_their_units) {
  EXPECT_EQ(parsed({"--params", "8B"}).parameters, 8'000'000'000);
  EXPECT_EQ(parsed({"--params", "1.5B"}).parameters, 1'500'000'000);
  EXPECT_EQ(parsed({"--params", "124439808"}).parameters, 124'439'808);
  EXPECT_EQ(parsed({"--params", "1", "--device-memory", "80GB"}).device_memory, 80'000'000'000);
  EXPECT_EQ(parsed({"--params", "1", "--device-memory", "80GiB"}).device_memory, 80LL << 30);
}

TEST(PlanOptions, a_model_brings_its_parameters_and_its_shape) {
  const plan::PlanQuery query = parsed({"--model", "gpt2-124m"});
  EXPECT_EQ(query.parameters, 124'439'808);
  ASSERT_TRUE(query.transformer);
  EXPECT_EQ(query.transformer->layers, 12);
  EXPECT_EQ(query.transformer->hidden, 3072);
  EXPECT_EQ(query.sequence, 1024) << "its context";
  EXPECT_EQ(query.members.back().unit, 0u);
  EXPECT_TRUE(query.members.back().keep_f32) << "the final norm";
  EXPECT_EQ(parsed({"--model", "gpt2-tiny"}).transformer->vocabulary, 256);
  EXPECT_EQ(parsed({"--model", "llama-135m"}).transformer->family, plan::Family::llama);
}

TEST(PlanOptions, a_config_json_is_a_model) {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
    "n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 32, "vocab_size": 100})");
  EXPECT_EQ(parsed({"--model", folder.file("config.json")}).transformer->layers, 2);
  EXPECT_EQ(parsed({"--model", folder.path()}).transformer->width, 64);
}

Words split(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(PlanOptions, every_dial_arrives) {
  const plan::PlanQuery query =
      parsed(split("--params 1e6 --blocks 4 --ranks 16 --hosts 2 --shard-size 4 --hardware a100 "
                   "--precision f32 --optimizer sgd --momentum 0.9 --frozen 0.25 --micro-batch 3 "
                   "--seq 5 --accumulate 7 --accumulate-in full --bucket-mb 1.5 --unit-blocks 2 "
                   "--prefetch 0 --reshard host --overlap off --algorithm ring --slowest 1.5 "
                   "--recompute --no-flash-attention --share-parameters --reproducible"));
  EXPECT_EQ(query.blocks, 4);
  EXPECT_EQ(query.ranks, 16);
  EXPECT_EQ(query.hosts, 2);
  EXPECT_EQ(query.shard_size, 4);
  EXPECT_EQ(query.hardware.name, "a100");
  EXPECT_EQ(query.precision, plan::Precision::f32);
  EXPECT_EQ(query.optimizer_vectors, 1);
  EXPECT_EQ(query.frozen_ppm, 250'000);
  EXPECT_EQ(query.micro_batch, 3);
  EXPECT_EQ(query.sequence, 5);
  EXPECT_EQ(query.accumulate, 7);
  EXPECT_FALSE(query.accumulate_in_shard);
  EXPECT_EQ(query.bucket_mb, 1.5);
  EXPECT_EQ(query.unit_blocks, 2);
  EXPECT_EQ(query.prefetch, 0);
  EXPECT_EQ(query.reshard, plan::Reshard::host);
  EXPECT_FALSE(query.overlap);
  EXPECT_EQ(query.algorithm, plan::Algorithm::ring);
  EXPECT_EQ(query.slowest, 1.5);
  EXPECT_TRUE(query.recompute);
  EXPECT_FALSE(query.flash_attention);
  EXPECT_TRUE(query.share_parameters);
  EXPECT_TRUE(query.reproducible);
  EXPECT_EQ(parsed({"--params", "1", "--optimizer", "sgd"}).optimizer_vectors, 0);
  EXPECT_EQ(parsed({"--params", "1", "--algorithm", "auto"}).algorithm, std::nullopt);
}

TEST(PlanOptions, forms_exclude_each_other) {
  EXPECT_EQ(parse_plan(Words{"--params", "1", "--json"}).form, PlanForm::json);
  EXPECT_EQ(parse_plan(Words{"--params", "1", "--explain"}).form, PlanForm::explanation);
  EXPECT_THROW(parse_plan(Words{"--params", "1", "--json", "--explain"}), UsageError);
  EXPECT_NE(parse_plan(Words{"--help"}).print, "");
}

void expect_refused(const Words& words, const std::string& names, const std::string& hint) {
  try {
    parse_plan(words);
    ADD_FAILURE() << "expected a refusal naming " << names;
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(names), std::string::npos) << text;
    EXPECT_NE(text.find(hint), std::string::npos) << text;
  }
}

TEST(PlanOptions, nonsense_is_refused_by_name) {
  expect_refused({}, "--params", "how large is the model?");
  expect_refused({"--params", "1", "--model", "gpt2-124m"}, "--model", "one of them");
  for (const char* const text : {"0", "-1", "1e40", "8 B", "8GB", "much", "1.5", "nan", ""}) {
    expect_refused({"--params", text}, "--params", "as in 8e9 or 8B");
  }
  expect_refused({"--params", "1", "--ranks", "0"}, "--ranks", "from 1 to");
  expect_refused({"--params", "1", "--ranks", "-2"}, "--ranks", "from 1 to");
  expect_refused({"--params", "1", "--ranks", "1e3"}, "--ranks", "from 1 to");
  expect_refused({"--params", "1", "--device-memory", "0"}, "--device-memory", "80GB");
  expect_refused({"--params", "1", "--device-memory", "lots"}, "--device-memory", "bytes");
  expect_refused({"--params", "1", "--hardware", "h300"}, "--hardware h300", "a100");
  expect_refused({"--model", "gpt5"}, "--model gpt5", "use one of gpt2-tiny");
  expect_refused({"--model", "gpt2-124m", "--blocks", "3"}, "--blocks", "leave it out");
  expect_refused({"--params", "1", "--algorithm", "rings"}, "--algorithm", "ring");
  expect_refused({"--params", "1", "--reshard", "maybe"}, "--reshard", "always or never or host");
  expect_refused({"--params", "1", "--momentum", "0.9"}, "--momentum", "--optimizer sgd");
  expect_refused({"--params", "1", "--frozen", "1"}, "--frozen", "below 1");
  expect_refused({"--params", "1", "--rank", "2"}, "--rank", "did you mean --ranks?");
  const test::TemporaryFolder folder;
  folder.write("config.json", "{\"model_type\": ");
  expect_refused({"--model", folder.file("config.json")}, "config.json", "");
}

}  // namespace
}  // namespace lockstep::cli
