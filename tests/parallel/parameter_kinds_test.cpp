// Modules by what becomes of their parameters: unused, tied, frozen, unfrozen, scalar, empty, of
// several dtypes, run twice, in a gradient of a gradient.
#include "parallel/module_kinds.h"

namespace lockstep {
namespace {

using test::input_of;
using test::Kind;
using test::NamedKind;

// Two linear layers, and parameters that `add` registers beside them.
struct BesideImpl : torch::nn::Module {
  using Add = std::function<void(BesideImpl&)>;
  explicit BesideImpl(const Add& add = [](BesideImpl&) {}) {
    first = register_module("first", torch::nn::Linear(6, 8));
    add(*this);
    second = register_module("second", torch::nn::Linear(8, 2));
  }
  // x: [samples, 6] → [samples, 2]
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

torch::Tensor beside_loss(BesideImpl& model, std::int64_t sample) {
  return (model.forward(input_of(sample, {3, 6})) - 1).pow(2).mean();
}

Kind unused_kind() {
  const auto model = std::make_shared<BesideImpl>(
      [](BesideImpl& self) { self.register_parameter("unused", torch::ones({5})); });
  return {model, [model](std::int64_t sample) { return beside_loss(*model, sample); }};
}

Kind frozen_kind() {
  const auto model = std::make_shared<BesideImpl>();
  model->first->weight.set_requires_grad(false);
  model->second->bias.set_requires_grad(false);
  return {model, [model](std::int64_t sample) { return beside_loss(*model, sample); }};
}

// Trained, but for the first layer in the first two steps and the second one's bias in the third.
Kind unfrozen_kind() {
  const auto model = std::make_shared<BesideImpl>();
  const auto freeze = [model](std::int64_t step) {
    for (torch::Tensor& parameter : model->first->parameters()) {
      parameter.set_requires_grad(step >= 2);
    }
    model->second->bias.set_requires_grad(step != 2);
  };
  freeze(0);
  return {model, [model](std::int64_t sample) { return beside_loss(*model, sample); }, freeze};
}

// One tensor under two names, used twice by different operators.
struct TiedHeadImpl : torch::nn::Module {
  TiedHeadImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(7, 6));
    body = register_module("body", torch::nn::Linear(6, 6));
    head = register_parameter("head", embedding->weight);
  }
  // x: [samples] → [samples, 7]
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::linear(torch::tanh(body(embedding(x))), head);
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear body{nullptr};
  torch::Tensor head;
};

Kind tied_head_kind() {
  const auto model = std::make_shared<TiedHeadImpl>();
  return {model, [model](std::int64_t sample) {
            const auto tokens = torch::arange(sample, sample + 5).remainder(7);
            return torch::cross_entropy_loss(model->forward(tokens), (tokens + 1).remainder(7));
          }};
}

Kind scalar_and_empty_kind() {
  const auto model = std::make_shared<BesideImpl>([](BesideImpl& self) {
    self.register_parameter("none", torch::ones({0}));
    self.register_parameter("scale", torch::tensor(1.5f));
    self.register_parameter("flat", torch::ones({3, 0}));
  });
  return {model, [model](std::int64_t sample) {
            auto parameters = model->named_parameters();
            const auto scaled = beside_loss(*model, sample) * parameters["scale"].pow(2);
            return scaled + parameters["none"].sum() + parameters["flat"].sum();
          }};
}

Kind mixed_dtypes_kind() {
  const auto model = std::make_shared<BesideImpl>([](BesideImpl& self) {
    self.register_parameter("offset", torch::full({2}, 0.25, torch::kFloat64));
  });
  return {model, [model](std::int64_t sample) {
            const auto offset = model->named_parameters()["offset"];
            const auto out = model->forward(input_of(sample, {3, 6})).to(torch::kFloat64);
            return (out - offset).pow(2).mean().to(torch::kFloat32);
          }};
}

Kind run_twice_kind() {
  const auto model = std::make_shared<BesideImpl>();
  return {model, [model](std::int64_t sample) {
            return beside_loss(*model, sample) + 0.5 * beside_loss(*model, sample + 500);
          }};
}

// The loss holds the slope of the output: backward goes through a backward.
Kind gradient_penalty_kind() {
  const auto model = std::make_shared<BesideImpl>();
  return {model, [model](std::int64_t sample) {
            const auto x = input_of(sample, {3, 6}).set_requires_grad(true);
            const auto slope = torch::autograd::grad({model->forward(x).sum()}, {x}, {},
                                                     /*retain_graph=*/true,
                                                     /*create_graph=*/true)[0];
            return beside_loss(*model, sample) + (slope.norm(2, 1) - 1).pow(2).mean();
          }};
}

const NamedKind kParameterKinds[] = {
    {"unused", unused_kind},
    {"frozen", frozen_kind},
    {"unfrozen", unfrozen_kind},
    {"tied", tied_head_kind},
    {"scalar and empty", scalar_and_empty_kind},
    {"mixed dtypes", mixed_dtypes_kind},
    {"run twice", run_twice_kind},
    {"gradient penalty", gradient_penalty_kind},
};

TEST(ParameterKinds, SameBitsOnAnyRanksAndNearPlainTorch) {
  for (const NamedKind& kind : kParameterKinds) {
    test::expect_equal_on_any_ranks_and_near_plain_torch(kind);
  }
}

}  // namespace
}  // namespace lockstep
