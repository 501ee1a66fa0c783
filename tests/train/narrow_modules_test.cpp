#include "train/narrow_modules.h"

#include "data/byte_tokenizer.h"
#include "models/registry.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

struct UsersImpl : torch::nn::Module {
  UsersImpl() {
    register_module("table", torch::nn::Embedding(4, 8));
    register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
    register_module("wide", torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
    register_module("head", torch::nn::Linear(8, 4));
  }
};

TEST(NarrowModules, AreTheUsersNormsAndEmbeddingsInBf16) {
  UsersImpl module;
  EXPECT_TRUE(narrow_modules(module).empty());
  module.to(torch::kBFloat16);
  module.named_children()["wide"]->to(torch::kFloat32);
  EXPECT_EQ(narrow_modules(module), (std::vector<std::string>{"table", "norm"}));
}

TEST(NarrowModules, OurModelsHaveNone) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
    const auto model = models::make_model(models::config_of(name, data::kByteVocabulary));
    model->to(torch::kBFloat16);
    EXPECT_TRUE(narrow_modules(*model).empty()) << name;
  }
}

}  // namespace
}  // namespace lockstep::train
