#include "parallel/units.h"

#include "lockstep/unit.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

struct PairImpl : torch::nn::Module {
  PairImpl() {
    register_module("inner", inner);
    own = register_parameter("own", torch::zeros({2}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return inner(x) * own; }
  Unit<torch::nn::Linear> inner{2, 2};
  torch::Tensor own;
};
TORCH_MODULE(Pair);

TEST(Units, AParameterBelongsToTheInnermostUnitThatHasIt) {
  torch::nn::Module plain;
  plain.register_module("unit", Unit<torch::nn::Linear>(2, 2));
  torch::nn::Module model;
  model.register_module("outside", torch::nn::Linear(2, 2));
  model.register_module("plain", std::make_shared<torch::nn::Module>(plain));
  model.register_module("pair", Unit<Pair>());
  const auto named = model.named_parameters();
  EXPECT_EQ(named.keys(),
            (std::vector<std::string>{"outside.weight", "outside.bias", "plain.unit.weight",
                                      "plain.unit.bias", "pair.own", "pair.inner.weight",
                                      "pair.inner.bias"}));
  EXPECT_EQ(units_of(model, named.values()), (std::vector<std::size_t>{0, 0, 1, 1, 2, 3, 3}));
}

struct ScaleImpl : torch::nn::Module {
  explicit ScaleImpl(const torch::Tensor& scale) { scale_ = register_parameter("scale", scale); }
  torch::Tensor forward(const torch::Tensor& x) { return x * scale_; }
  torch::Tensor scale_;
};
TORCH_MODULE(Scale);

TEST(Units, WhatTwoUnitsShareBelongsToNone) {
  const torch::Tensor shared = torch::zeros({2});
  torch::nn::Module tied;
  tied.register_module("first", Unit<Scale>(shared));
  tied.register_module("second", Unit<Scale>(shared));
  EXPECT_EQ(units_of(tied, {shared}), std::vector<std::size_t>{0});
  const Unit<Scale> once(shared);
  torch::nn::Module twice;
  twice.register_module("first", once);
  twice.register_module("second", once);
  EXPECT_EQ(units_of(twice, {shared}), std::vector<std::size_t>{1}) << "one module, run twice";
}

}  // namespace
}  // namespace lockstep::parallel
