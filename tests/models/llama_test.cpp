#include "models/llama.h"

#include "models/parameter_list.h"
#include "models/registry.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace lockstep::models {
namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

LlamaConfig small(std::int64_t key_heads, bool tied) {
  return {.layers = 2,
          .width = 20,
          .heads = 4,
          .key_heads = key_heads,
          .head_size = 6,
          .hidden = 18,
          .context = 8,
          .vocabulary = 11,
          .rope_theta = 100.0,
          .norm_epsilon = 1e-5,
          .initial_deviation = 0.2,
          .tied = tied};
}

Tensor some_tokens(std::int64_t length) {
  return torch::randint(11, {3, length}, torch::kInt64);  // [B, T]
}

// The naive model: heads one by one, complex numbers for the rotation, nothing fused.
class LlamaOracle {
 public:
  explicit LlamaOracle(Llama& model) : config_(model->config()), all_(model->named_parameters()) {}

  Tensor logits(const Tensor& tokens) {
    Tensor x = F::embedding(tokens, get("model.embed_tokens"));  // [B, T, C]
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string block = "model.layers." + std::to_string(layer) + ".";
      x = x + attention(norm(x, block + "input_layernorm"), block + "self_attn.");
      const Tensor y = norm(x, block + "post_attention_layernorm");
      const Tensor gate = linear(y, block + "mlp.gate_proj");
      x = x + linear(gate * torch::sigmoid(gate) * linear(y, block + "mlp.up_proj"),
                     block + "mlp.down_proj");
    }
    return linear(norm(x, "model.norm"), config_.tied ? "model.embed_tokens" : "lm_head");
  }

 private:
  const Tensor& get(const std::string& name) { return all_[name + ".weight"]; }
  Tensor linear(const Tensor& x, const std::string& name) {
    return torch::matmul(x, get(name).t());
  }
  Tensor norm(const Tensor& x, const std::string& name) {
    return x / (x.square().mean(-1, true) + config_.norm_epsilon).sqrt() * get(name);
  }
  // x [B, T, D]: pairs as complex numbers, times e^(i·angle).
  Tensor turned(const Tensor& x) {
    const std::int64_t size = config_.head_size;
    const Tensor powers = torch::arange(0, size, 2, torch::kFloat32) / size;
    const Tensor angles = torch::arange(x.size(1), torch::kFloat32).unsqueeze(1) /
                          torch::pow(config_.rope_theta, powers);  // [T, D/2]
    const Tensor pairs = torch::complex(x.slice(2, 0, size / 2), x.slice(2, size / 2, size));
    const Tensor moved = pairs * torch::polar(torch::ones_like(angles), angles);
    return torch::cat({torch::real(moved), torch::imag(moved)}, 2);
  }
  Tensor attention(const Tensor& x, const std::string& name) {
    const std::int64_t size = config_.head_size;
    const auto length = x.size(1);
    const auto head_of = [&](const char* part, std::int64_t head) {
      return linear(x, name + part).slice(2, head * size, (head + 1) * size);  // [B, T, D]
    };
    const Tensor future = torch::ones({length, length}).triu(1).to(torch::kBool);
    std::vector<Tensor> mixed;
    for (std::int64_t head = 0; head < config_.heads; ++head) {
      const std::int64_t key_head = head / (config_.heads / config_.key_heads);
      const Tensor scores = torch::matmul(turned(head_of("q_proj", head)),
                                          turned(head_of("k_proj", key_head)).transpose(1, 2)) /
                            std::sqrt(size);
      mixed.push_back(torch::matmul(scores.masked_fill(future, -INFINITY).softmax(-1),
                                    head_of("v_proj", key_head)));
    }
    return linear(torch::cat(mixed, 2), name + "o_proj");
  }

  LlamaConfig config_;
  torch::OrderedDict<std::string, Tensor> all_;
};

void expect_agreement(const LlamaConfig& config) {
  torch::manual_seed(1);
  Llama model(config);
  const Tensor tokens = some_tokens(7);
  const Tensor targets = some_tokens(7);
  EXPECT_TRUE(
      torch::allclose(model->forward(tokens), LlamaOracle(model).logits(tokens), 1e-5, 1e-5));
  model->loss(tokens, targets).backward();
  std::vector<Tensor> gradients;
  for (const auto& parameter : model->parameters()) {
    gradients.push_back(parameter.grad().clone());
  }
  model->zero_grad();
  const Tensor logits = LlamaOracle(model).logits(tokens);
  F::cross_entropy(logits.reshape({-1, config.vocabulary}), targets.reshape({-1})).backward();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(torch::allclose(gradients[i], model->parameters()[i].grad(), 1e-4, 1e-6))
        << model->named_parameters()[i].key();
  }
}

TEST(Llama, AgreesWithTheModelSpelledOut) {
  for (const std::int64_t key_heads : {1, 2, 4}) {
    for (const bool tied : {true, false}) {
      expect_agreement(small(key_heads, tied));
    }
  }
}

TEST(Llama, DoesNotSeeTheFuture) {
  Llama model(small(2, true));
  const Tensor tokens = some_tokens(8);
  Tensor changed = tokens.clone();
  changed.select(1, 7).fill_(0);
  EXPECT_TRUE(
      torch::equal(model->forward(tokens).slice(1, 0, 7), model->forward(changed).slice(1, 0, 7)));
}

TEST(Llama, HasHuggingFacesNames) {
  Llama model(small(2, false));
  const auto parameters = model->named_parameters();
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> expected{
      {"model.embed_tokens.weight", {11, 20}},
      {"model.layers.0.input_layernorm.weight", {20}},
      {"model.layers.0.self_attn.q_proj.weight", {24, 20}},
      {"model.layers.0.self_attn.k_proj.weight", {12, 20}},
      {"model.layers.0.self_attn.v_proj.weight", {12, 20}},
      {"model.layers.0.self_attn.o_proj.weight", {20, 24}},
      {"model.layers.0.post_attention_layernorm.weight", {20}},
      {"model.layers.0.mlp.gate_proj.weight", {18, 20}},
      {"model.layers.0.mlp.up_proj.weight", {18, 20}},
      {"model.layers.0.mlp.down_proj.weight", {20, 18}},
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(parameters[i].key(), expected[i].first);
    EXPECT_EQ(parameters[i].value().sizes().vec(), expected[i].second);
  }
  EXPECT_EQ(parameters.size(), 1u + 2 * 9 + 2);
  EXPECT_TRUE(parameters.contains("model.norm.weight"));
  EXPECT_TRUE(parameters.contains("lm_head.weight"));
  EXPECT_FALSE(Llama(small(2, true))->named_parameters().contains("lm_head.weight"));
}

TEST(Llama, StartsFromItsDeviation) {
  torch::manual_seed(1);
  Llama model(LlamaConfig{.layers = 1,
                          .width = 128,
                          .heads = 4,
                          .key_heads = 4,
                          .head_size = 32,
                          .hidden = 256,
                          .vocabulary = 500,
                          .initial_deviation = 0.05});
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() == 1) {
      EXPECT_TRUE(torch::equal(item.value(), torch::ones_like(item.value()))) << item.key();
    } else {
      EXPECT_NEAR(item.value().std().item<double>(), 0.05, 0.002) << item.key();
      EXPECT_NEAR(item.value().mean().item<double>(), 0.0, 0.002) << item.key();
    }
  }
}

TEST(Llama, CountsForwards) {
  Llama model(small(2, true));
  model->forward(some_tokens(3));
  model->loss(some_tokens(3), some_tokens(3));
  EXPECT_EQ(model->forwards(), 2);
}

TEST(Llama, InBf16KeepsNormsAndLossInFp32) {
  torch::manual_seed(1);
  Llama model(small(2, true));
  for (const auto& item : model->named_parameters()) {
    if (!keep_f32(item.key())) {
      item.value().set_data(item.value().to(torch::kBFloat16));
    }
  }
  const Tensor tokens = some_tokens(8);
  EXPECT_EQ(model->forward(tokens).scalar_type(), torch::kBFloat16);
  const Tensor loss = model->loss(tokens, tokens);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat32);
  loss.backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_EQ(item.value().grad().scalar_type(), item.value().scalar_type()) << item.key();
  }
}

}  // namespace
}  // namespace lockstep::models
