// Modules by what they compute: convolutions with batch norm, recurrence, attention.
#include "parallel/module_kinds.h"

namespace lockstep {
namespace {

using test::input_of;
using test::Kind;
using test::NamedKind;

struct ConvolutionalImpl : torch::nn::Module {
  ConvolutionalImpl() {
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    second = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 3, 3)));
    head_norm = register_module("head_norm", torch::nn::BatchNorm1d(3));
  }
  // x: [samples, 2, 8, 8] → [samples, 3]
  torch::Tensor forward(const torch::Tensor& x) {
    const auto hidden = torch::relu(norm(first(x)));
    return head_norm(second(hidden).mean({2, 3}));
  }
  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::BatchNorm1d head_norm{nullptr};
};

Kind convolutional_kind() {
  const auto model = std::make_shared<ConvolutionalImpl>();
  return {model, [model](std::int64_t sample) {
            const auto target = input_of(sample + 1000, {4, 3});
            return (model->forward(input_of(sample, {4, 2, 8, 8})) - target).pow(2).mean();
          }};
}

struct RecurrentImpl : torch::nn::Module {
  RecurrentImpl() {
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(3, 6).num_layers(2)));
    head = register_module("head", torch::nn::Linear(6, 1));
  }
  // x: [length, samples, 3] → [length, samples, 1]
  torch::Tensor forward(const torch::Tensor& x) { return head(std::get<0>(lstm(x))); }
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};

Kind recurrent_kind() {
  const auto model = std::make_shared<RecurrentImpl>();
  return {model, [model](std::int64_t sample) {
            return (model->forward(input_of(sample, {5, 2, 3})) - 0.5).pow(2).mean();
          }};
}

// One module: it calls its layers itself.
Kind transformer_kind() {
  torch::nn::TransformerEncoder model(
      torch::nn::TransformerEncoderOptions(
          torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0.0), 2)
          .norm(torch::nn::AnyModule(torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})))));
  return {model.ptr(), [model](std::int64_t sample) mutable {
            return (model(input_of(sample, {5, 2, 8})) - input_of(sample + 1000, {5, 2, 8}))
                .pow(2)
                .mean();
          }};
}

const NamedKind kKinds[] = {
    {"convolutional", convolutional_kind},
    {"LSTM", recurrent_kind},
    {"TransformerEncoder", transformer_kind},
};

TEST(NetworkKinds, SameBitsOnAnyRanksAndNearPlainTorch) {
  for (const NamedKind& kind : kKinds) {
    test::expect_equal_on_any_ranks_and_near_plain_torch(kind);
  }
}

}  // namespace
}  // namespace lockstep
