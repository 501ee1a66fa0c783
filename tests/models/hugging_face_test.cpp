#include "models/hugging_face.h"

#include "checkpoint/safetensors.h"
#include "launch/started_program.h"
#include "lockstep/error.h"
#include "models/configuration_file.h"
#include "models/registry.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <vector>

namespace lockstep::models {
namespace {

namespace fs = std::filesystem;
using checkpoint::NamedTensor;
using checkpoint::SafetensorsFile;
using test::TemporaryFolder;
using torch::Tensor;

// What transformers is held to as well (transformers_agreement.py).
constexpr double kTolerance = 1e-4;

void run_transformers(const std::string& what, const std::string& root) {
  test::StartedProgram python({LOCKSTEP_TORCH_PYTHON, "-B", LOCKSTEP_TRANSFORMERS, what, root});
  ASSERT_EQ(python.wait(std::chrono::seconds(240)), 0) << python.output() << python.error();
}

std::shared_ptr<LanguageModel> loaded(const std::string& folder) {
  auto model = make_model(config_of(folder, 0));
  load_folder(folder, *model);
  model->eval();
  return model;
}

Tensor tensor_in(const SafetensorsFile& file, const std::string& name, torch::Dtype dtype) {
  const NamedTensor& saved = file.tensors().at(name);
  return torch::from_blob(const_cast<void*>(saved.data), saved.shape, dtype).clone();
}

void expect_transformers_logits(const std::string& folder) {
  const torch::NoGradGuard no_gradients;
  const SafetensorsFile expected(folder + "/expected.safetensors");
  const Tensor tokens = tensor_in(expected, "tokens", torch::kInt64);    // [B, T]
  const Tensor logits = tensor_in(expected, "logits", torch::kFloat32);  // [B, T, V]
  const Tensor apart = (loaded(folder)->forward(tokens) - logits).abs().max();
  EXPECT_LE(apart.item<double>(), kTolerance) << folder;
}

TEST(HuggingFace, LogitsEqualTransformersBothWays) {
  const TemporaryFolder root;
  run_transformers("write", root.path());
  std::int64_t folders = 0;
  for (const auto& entry : fs::directory_iterator(root.path())) {
    const std::string folder = entry.path().string();
    expect_transformers_logits(folder);
    export_folder(folder + "/exported", *loaded(folder),
                  configuration_text(folder, config_of(folder, 0)));
    ++folders;
  }
  EXPECT_EQ(folders, 7);
  run_transformers("check", root.path());
}

LlamaConfig small_llama() {
  return {.layers = 1,
          .width = 8,
          .heads = 2,
          .key_heads = 1,
          .head_size = 4,
          .hidden = 6,
          .context = 8,
          .vocabulary = 5};
}

// A folder of a model of ours, whose tensors can be spoiled.
class Folder : public ::testing::Test {
 protected:
  void SetUp() override { write(Gpt2Config{.layers = 1, .width = 8, .heads = 2, .vocabulary = 5}); }

  void write(const ModelConfig& config) {
    torch::manual_seed(1);
    model_ = make_model(config);
    export_folder(folder_.path(), *model_, configuration_text(config));
  }

  // Writes the folder's tensors again after `change`.
  template <class Change>
  void spoil(const Change& change) {
    const SafetensorsFile file(path());
    auto tensors = file.tensors();
    change(tensors);
    std::vector<NamedTensor> list;
    for (const auto& [name, tensor] : tensors) {
      list.push_back(tensor);
      list.back().name = name;
    }
    checkpoint::write_safetensors(path(), std::move(list));
  }
  std::string refusal() const {
    return test::error_of<UsageError>([&] { load_folder(folder_.path(), *model_); });
  }
  std::string path() const { return folder_.file("model.safetensors"); }

  TemporaryFolder folder_;
  std::shared_ptr<LanguageModel> model_;
};

TEST_F(Folder, ComesBackBitForBit) {
  for (const ModelConfig& config : {model_->configuration(), ModelConfig(small_llama())}) {
    write(config);
    const auto again = loaded(folder_.path());
    const auto expected = model_->named_parameters();
    for (const auto& item : again->named_parameters()) {
      EXPECT_TRUE(torch::equal(item.value(), expected[item.key()])) << item.key();
    }
  }
}

TEST_F(Folder, HoldsGpt2sProjectionsTransposed) {
  const SafetensorsFile file(path());
  const auto shape_of = [&](const std::string& name) {
    return file.tensors().at("transformer.h.0." + name + ".weight").shape;
  };
  EXPECT_EQ(shape_of("attn.c_attn"), (std::vector<std::int64_t>{8, 24}));
  EXPECT_EQ(shape_of("mlp.c_fc"), (std::vector<std::int64_t>{8, 32}));
  EXPECT_EQ(shape_of("mlp.c_proj"), (std::vector<std::int64_t>{32, 8}));
}

TEST_F(Folder, NamesEverythingThatIsWrongInOneLine) {
  spoil([](auto& tensors) {
    auto moved = tensors.extract("transformer.ln_f.bias");
    moved.key() = "transformer.ln_f.shift";
    tensors.insert(std::move(moved));
    tensors.at("transformer.wpe.weight").shape = {512, 16};
  });
  EXPECT_EQ(refusal(),
            folder_.path() +
                ": its tensors are not of the model in config.json: 'transformer.wpe.weight' "
                "expected f32, f16 or bf16 [1024, 8], found f32 [512, 16]; "
                "'transformer.ln_f.bias' is missing; 'transformer.ln_f.shift' is not of this "
                "model");
  spoil([](auto& tensors) { tensors.clear(); });
  EXPECT_NE(refusal().find("; and 8 more"), std::string::npos) << refusal();
}

TEST_F(Folder, RefusesIntegersAsWeights) {
  spoil([](auto& tensors) { tensors.at("transformer.ln_f.bias").dtype = Dtype::i32; });
  EXPECT_NE(refusal().find("'transformer.ln_f.bias' expected f32, f16 or bf16 [8], found i32 [8]"),
            std::string::npos)
      << refusal();
}

TEST_F(Folder, RefusesATiedHeadThatIsAnother) {
  write(small_llama());
  spoil([](auto& tensors) { tensors["lm_head.weight"] = tensors.at("model.embed_tokens.weight"); });
  EXPECT_NO_THROW(load_folder(folder_.path(), *model_));
  spoil([](auto& tensors) {
    tensors["lm_head.weight"].data = tensors.at("model.layers.0.mlp.gate_proj.weight").data;
  });
  EXPECT_NE(refusal().find("'lm_head.weight' differs from 'model.embed_tokens.weight'"),
            std::string::npos)
      << refusal();
}

TEST_F(Folder, RefusesATensorThatComesTwice) {
  spoil([](auto& tensors) { tensors["ln_f.bias"] = tensors.at("transformer.ln_f.bias"); });
  EXPECT_NE(refusal().find("ln_f.bias' comes twice in this folder"), std::string::npos);
}

TEST_F(Folder, FollowsItsIndexAndNamesWhatItCanNotFollow) {
  const auto index = [&](const std::string& text) {
    folder_.write("model.safetensors.index.json", text);
  };
  fs::rename(path(), folder_.file("other.safetensors"));
  EXPECT_NE(refusal().find("found neither"), std::string::npos);
  index(R"({"weight_map": {"any": "other.safetensors"}})");
  EXPECT_NO_THROW(load_folder(folder_.path(), *model_));
  index(R"({"weight_map": {"any": 3}})");
  EXPECT_NE(refusal().find("'any': expected a file, found 3"), std::string::npos);
  index("[]");
  EXPECT_NE(refusal().find("expected an object with weight_map"), std::string::npos);
  index(R"({"weight_map": {"any": "absent.safetensors"}})");
  EXPECT_NE(
      test::error_of<SystemError>([&] { load_folder(folder_.path(), *model_); }).find("absent"),
      std::string::npos);
}

}  // namespace
}  // namespace lockstep::models
