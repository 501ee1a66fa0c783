#include "train/weights.h"

#include "lockstep/error.h"
#include "models/gpt2.h"
#include "models/parameter_list.h"
#include "models/registry.h"
#include "support/ranks.h"
#include "support/temporary_folder.h"
#include "train/flip_bit.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lockstep::train {
namespace {

using models::Gpt2;

constexpr models::Gpt2Config kSmall{
    .layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 5};

Gpt2 seeded_model() {
  torch::manual_seed(1);
  return Gpt2(kSmall);
}

Precision mixed() { return Precision::bf16_mixed(models::keep_f32); }

TEST(WeightDigest, IsOverNamesShapesAndValuesInNameOrder) {
  Gpt2 model = seeded_model();
  std::map<std::string, torch::Tensor> sorted;
  for (const auto& item : model->named_parameters()) {
    sorted.emplace(item.key(), item.value().detach().clone());
  }
  Sha256 hash;
  for (const auto& [name, tensor] : sorted) {
    hash.update(name.c_str(), name.size() + 1);
    const std::int64_t dimensions = tensor.dim();
    hash.update(&dimensions, 8);
    hash.update(tensor.sizes().data(), 8 * tensor.sizes().size());
    hash.update(tensor.data_ptr(), tensor.nbytes());
  }
  Group alone = Group::alone();
  const Parallel parallel(model, alone, {.stage = Stage::single});
  EXPECT_EQ(hex(digest_weights(parallel).weights), hex(hash.finish()));
}

TEST(WeightDigest, UnderBf16IsOverTheMasters) {
  const auto digests_of = [](Precision precision) {
    Gpt2 model = seeded_model();
    Group alone = Group::alone();
    Parallel parallel(model, alone, {.stage = Stage::single, .precision = std::move(precision)});
    const AdamW optimizer = parallel.adamw();
    return digest_weights(parallel);
  };
  const WeightDigests f32 = digests_of(Precision::f32());
  const WeightDigests bf16 = digests_of(mixed());
  EXPECT_EQ(f32.weights, bf16.weights);
  EXPECT_EQ(f32.weights, f32.parameters);
  EXPECT_NE(bf16.weights, bf16.parameters);
}

void save(const std::string& path, const Parallel& parallel) {
  WeightsFile file(path, {"small", 4, "{}", "bytes", 7}, parallel.module());
  digest_weights(parallel, &file);
  file.publish();
}

TEST(Weights, ComeBackFromTheirFile) {
  const test::TemporaryFolder folder;
  Gpt2 model = seeded_model();
  Group alone = Group::alone();
  const Parallel parallel(model, alone, {.stage = Stage::single});
  save(folder.file("w"), parallel);
  const checkpoint::SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(origin_of(file).model, "small");
  EXPECT_EQ(origin_of(file).sequence, 4);
  EXPECT_EQ(origin_of(file).configuration, "{}");
  EXPECT_EQ(origin_of(file).tokenizer, "bytes");
  EXPECT_EQ(origin_of(file).tokenizer_identity, 7u);
  Gpt2 other(kSmall);
  load_weights(file, *other);
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), other->named_parameters()[item.key()])) << item.key();
  }
}

TEST(Weights, OfAnotherProgramDoNotSayWhatTheyAre) {
  const test::TemporaryFolder folder;
  checkpoint::write_safetensors(folder.file("w"), {}, {{"format", "pt"}});
  const checkpoint::SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(test::error_of<UsageError>([&] { origin_of(file); }).find(folder.file("w")), 0u);
}

TEST(Weights, OfAnotherModelAreRefusedByName) {
  const test::TemporaryFolder folder;
  Gpt2 model = seeded_model();
  Group alone = Group::alone();
  const Parallel parallel(model, alone, {.stage = Stage::single});
  save(folder.file("w"), parallel);
  const checkpoint::SafetensorsFile file(folder.file("w"));
  models::Gpt2Config config = kSmall;
  config.vocabulary = 6;
  Gpt2 wider(config);
  EXPECT_EQ(test::error_of<Error>([&] { load_weights(file, *wider); }),
            folder.file("w") +
                ": parameter 'transformer.wte.weight': expected f32 [6, 8], found f32 [5, 8]");
  config = kSmall;
  config.layers = 2;
  Gpt2 deeper(config);
  EXPECT_NE(test::error_of<Error>([&] {
              load_weights(file, *deeper);
            }).find("has no parameter 'transformer.h.1."),
            std::string::npos);
}

std::vector<test::RankResult> verified(Precision precision, const std::string& flipped) {
  return test::run_ranks(2, [&](Group& world) {
    at::set_num_threads(1);
    Gpt2 model = seeded_model();
    Parallel parallel(model, world, {.stage = Stage::ddp, .precision = precision});
    const AdamW optimizer = parallel.adamw();
    if (world.rank() == 1 && !flipped.empty()) {
      test::flip_bit(*model, flipped);
    }
    Group records = std::move(*world.split(0, world.rank()));
    verify_replicas(records, digest_weights(parallel));
    return std::vector<double>{1.0};
  });
}

TEST(VerifyReplicas, EqualOnesPass) {
  for (const auto& result : verified(Precision::f32(), "")) {
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.values, std::vector<double>{1.0});
  }
}

TEST(VerifyReplicas, OneFlippedBitFailsEveryRank) {
  for (const Precision& precision : {Precision::f32(), mixed()}) {
    for (const auto& result : verified(precision, "transformer.h.0.mlp.c_fc.weight")) {
      EXPECT_EQ(result.error.find("replicas differ after training: rank 0 has "), 0u)
          << result.error;
      EXPECT_NE(result.error.find(", rank 1 has "), std::string::npos) << result.error;
    }
  }
}

}  // namespace
}  // namespace lockstep::train
