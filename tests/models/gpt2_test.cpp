#include "models/gpt2.h"

#include "models/parameter_list.h"
#include "models/registry.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace lockstep::models {
namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

constexpr Gpt2Config kSmall{
    .layers = 2, .width = 16, .heads = 2, .context = 8, .vocabulary = 11, .dropout = 0.0};

Tensor some_tokens(const Gpt2Config& config, std::int64_t length) {
  return torch::randint(config.vocabulary, {3, length}, torch::kInt64);  // [B, T]
}

// The naive model: attention spelled out, LibTorch's plain functions, nothing fused.
class Gpt2Oracle {
 public:
  explicit Gpt2Oracle(Gpt2& model) : config_(model->config()), all_(model->named_parameters()) {}

  Tensor logits(const Tensor& tokens) {
    Tensor x = F::embedding(tokens, get("wte.weight")) +
               get("wpe.weight").slice(0, 0, tokens.size(1));  // [B, T, C]
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string block = "h." + std::to_string(layer) + ".";
      x = x + attention(norm(x, block + "ln_1"), block + "attn.");
      const Tensor wide = linear(norm(x, block + "ln_2"), block + "mlp.c_fc");
      x = x + linear(torch::gelu(wide, "tanh"), block + "mlp.c_proj");
    }
    return torch::matmul(norm(x, "ln_f"), get("wte.weight").t());  // [B, T, V]
  }

 private:
  const Tensor& get(const std::string& name) { return all_["transformer." + name]; }
  Tensor linear(const Tensor& x, const std::string& name) {
    return torch::matmul(x, get(name + ".weight").t()) + get(name + ".bias");
  }
  Tensor norm(const Tensor& x, const std::string& name) {
    const Tensor centred = x - x.mean(-1, true);
    const Tensor deviation = (centred.square().mean(-1, true) + 1e-5).sqrt();
    return centred / deviation * get(name + ".weight") + get(name + ".bias");
  }
  Tensor attention(const Tensor& x, const std::string& name) {
    const auto size = config_.width / config_.heads;
    const auto length = x.size(1);
    const auto parts = linear(x, name + "c_attn").chunk(3, 2);
    const Tensor future = torch::ones({length, length}).triu(1).to(torch::kBool);
    Tensor joined;
    for (std::int64_t head = 0; head < config_.heads; ++head) {
      const auto of = [&](int i) { return parts[i].slice(2, head * size, (head + 1) * size); };
      const Tensor scores = torch::matmul(of(0), of(1).transpose(1, 2)) / std::sqrt(size);
      const Tensor mixed =
          torch::matmul(scores.masked_fill(future, -INFINITY).softmax(-1), of(2));  // [B, T, C/H]
      joined = joined.defined() ? torch::cat({joined, mixed}, 2) : mixed;
    }
    return linear(joined, name + "c_proj");
  }

  Gpt2Config config_;
  torch::OrderedDict<std::string, Tensor> all_;
};

TEST(Gpt2, AgreesWithTheModelSpelledOut) {
  torch::manual_seed(1);
  Gpt2 model(kSmall);
  const Tensor tokens = some_tokens(kSmall, 7);
  const Tensor targets = some_tokens(kSmall, 7);
  const Tensor expected = Gpt2Oracle(model).logits(tokens);
  EXPECT_TRUE(torch::allclose(model->forward(tokens), expected, 1e-5, 1e-6));

  const auto loss_of = [&](const Tensor& logits) {
    return F::cross_entropy(logits.reshape({-1, kSmall.vocabulary}), targets.reshape({-1}));
  };
  model->loss(tokens, targets).backward();
  std::vector<Tensor> gradients;
  for (const auto& parameter : model->parameters()) {
    gradients.push_back(parameter.grad().clone());
  }
  model->zero_grad();
  loss_of(Gpt2Oracle(model).logits(tokens)).backward();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(torch::allclose(gradients[i], model->parameters()[i].grad(), 1e-4, 1e-6))
        << model->named_parameters()[i].key();
  }
}

TEST(Gpt2, DoesNotSeeTheFuture) {
  Gpt2 model(kSmall);
  const Tensor tokens = some_tokens(kSmall, 8);
  Tensor changed = tokens.clone();
  changed.select(1, 7).fill_(0);
  EXPECT_TRUE(
      torch::equal(model->forward(tokens).slice(1, 0, 7), model->forward(changed).slice(1, 0, 7)));
}

TEST(Gpt2, HasHuggingFacesNames) {
  Gpt2 model(kSmall);
  const auto parameters = model->named_parameters();
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> expected{
      {"transformer.wte.weight", {11, 16}},
      {"transformer.wpe.weight", {8, 16}},
      {"transformer.h.0.ln_1.weight", {16}},
      {"transformer.h.0.ln_1.bias", {16}},
      {"transformer.h.0.attn.c_attn.weight", {48, 16}},
      {"transformer.h.0.attn.c_attn.bias", {48}},
      {"transformer.h.0.attn.c_proj.weight", {16, 16}},
      {"transformer.h.0.attn.c_proj.bias", {16}},
      {"transformer.h.0.ln_2.weight", {16}},
      {"transformer.h.0.ln_2.bias", {16}},
      {"transformer.h.0.mlp.c_fc.weight", {64, 16}},
      {"transformer.h.0.mlp.c_fc.bias", {64}},
      {"transformer.h.0.mlp.c_proj.weight", {16, 64}},
      {"transformer.h.0.mlp.c_proj.bias", {16}},
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(parameters[i].key(), expected[i].first);
    EXPECT_EQ(parameters[i].value().sizes().vec(), expected[i].second);
  }
  EXPECT_EQ(parameters.size(), 2u + 2 * 12 + 2);
  EXPECT_EQ(parameters.keys().back(), "transformer.ln_f.bias");
}

TEST(Gpt2, StartsAsGpt2Does) {
  torch::manual_seed(1);
  Gpt2 model(Gpt2Config{.layers = 8, .width = 256, .heads = 4, .context = 64, .vocabulary = 500});
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const Tensor& value = item.value();
    if (name.ends_with("bias")) {
      EXPECT_EQ(value.abs().max().item<float>(), 0.0f) << name;
    } else if (value.dim() == 1) {
      EXPECT_TRUE(torch::equal(value, torch::ones_like(value))) << name;
    } else {
      const double expected = name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(16.0) : 0.02;
      EXPECT_NEAR(value.std().item<double>() / expected, 1.0, 0.03) << name;
      EXPECT_NEAR(value.mean().item<double>() / expected, 0.0, 0.03) << name;
    }
  }
}

TEST(Gpt2, DropsOnlyInTrainingAndAsTheGeneratorSays) {
  Gpt2Config config = kSmall;
  config.dropout = 0.3;
  Gpt2 model(config);
  const Tensor tokens = some_tokens(config, 8);
  const auto seeded = [&](std::uint64_t seed) {
    torch::manual_seed(seed);
    return model->forward(tokens);
  };
  EXPECT_TRUE(torch::equal(seeded(1), seeded(1)));
  EXPECT_FALSE(torch::allclose(seeded(1), seeded(2)));
  model->eval();
  EXPECT_TRUE(torch::equal(seeded(1), seeded(2)));
}

TEST(Gpt2, CountsForwards) {
  Gpt2 model(kSmall);
  EXPECT_EQ(model->forwards(), 0);
  model->forward(some_tokens(kSmall, 3));
  model->loss(some_tokens(kSmall, 3), some_tokens(kSmall, 3));
  EXPECT_EQ(model->forwards(), 2);
}

// Mixed precision as the engine sets it up: bf16 but for the norms.
Gpt2 mixed(const Gpt2Config& config) {
  Gpt2 model(config);
  for (const auto& item : model->named_parameters()) {
    if (!keep_f32(item.key())) {
      item.value().set_data(item.value().to(torch::kBFloat16));
    }
  }
  return model;
}

TEST(Gpt2, InBf16KeepsNormsAndLossInFp32) {
  torch::manual_seed(1);
  Gpt2 model = mixed(kSmall);
  const Tensor tokens = some_tokens(kSmall, 8);
  EXPECT_EQ(model->forward(tokens).scalar_type(), torch::kBFloat16);
  const Tensor loss = model->loss(tokens, tokens);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat32);
  loss.backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_EQ(item.value().grad().scalar_type(), item.value().scalar_type()) << item.key();
  }
}

// Sums over 4,096 rows of ones: added in bf16 they would stop at 256.
TEST(Gpt2, InBf16AddsGradientsOfManyRowsInFp32) {
  constexpr std::int64_t kRows = 4096;
  Projection projection(4, 8, 0.02);
  projection->to(torch::kBFloat16);
  projection->forward(torch::ones({kRows, 4}, torch::kBFloat16)).sum().backward();
  const auto of_projection = projection->named_parameters();
  EXPECT_TRUE(of_projection["bias"].grad().eq(kRows).all().item<bool>());
  EXPECT_TRUE(of_projection["weight"].grad().eq(kRows).all().item<bool>());

  const Tensor positions = torch::zeros({2, 3}, torch::kBFloat16).requires_grad_(true);  // [T, C]
  (torch::ones({kRows, 2, 3}, torch::kBFloat16) + positions).sum().backward();
  EXPECT_TRUE(positions.grad().eq(kRows).all().item<bool>());
}

}  // namespace
}  // namespace lockstep::models
