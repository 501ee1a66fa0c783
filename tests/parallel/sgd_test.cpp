#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::append;
using test::error_of;
using test::Parameters;
using test::Perceptron;
using test::run;
using test::Shapes;
using test::values_of;

using Values = std::vector<double>;

Perceptron seeded_model(torch::Dtype dtype) {
  torch::manual_seed(11);
  Perceptron model(16, 2);
  model->to(dtype);
  return model;
}

torch::Tensor loss_of(Perceptron& model, int step) {
  const auto dtype = model->norm->weight.scalar_type();
  return (model(torch::ones({2, 16}, dtype) * (1 + step % 3)) - 1).pow(2).mean();
}

void expect_steps_as_torch(const SGDOptions& options) {
  Group group = Group::alone();
  Perceptron ours = seeded_model(torch::kFloat64);
  Perceptron theirs = seeded_model(torch::kFloat64);
  Parallel parallel(ours, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd(options);
  torch::optim::SGD reference(theirs->parameters(), torch::optim::SGDOptions(options.lr)
                                                        .momentum(options.momentum)
                                                        .dampening(options.dampening)
                                                        .weight_decay(options.weight_decay)
                                                        .nesterov(options.nesterov));
  for (int step = 0; step < 20; ++step) {
    loss_of(ours, step).backward();
    optimizer.step();
    reference.zero_grad();
    loss_of(theirs, step).backward();
    reference.step();
  }
  for (const auto& item : theirs->named_parameters()) {
    const torch::Tensor other = ours->named_parameters()[item.key()];
    EXPECT_TRUE(torch::allclose(other, item.value(), 1e-12, 1e-12)) << item.key();
  }
}

TEST(SGD, StepsAsTorchDoes) {
  expect_steps_as_torch({.lr = 0.05});
  expect_steps_as_torch({.lr = 0.05, .weight_decay = 0.1});
  expect_steps_as_torch({.lr = 0.05, .momentum = 0.9});
  expect_steps_as_torch({.lr = 0.05, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1});
  expect_steps_as_torch({.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
}

// A parameter's first gradient makes its momentum, whichever step it comes in.
TEST(SGD, MomentumOfAParameterStartsWithItsFirstGradient) {
  Group group = Group::alone();
  Parameters model(Shapes{{"a", {}}, {"late", {}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd({.lr = 1, .momentum = 0.5, .dampening = 0.5});
  for (int step = 0; step < 3; ++step) {
    torch::Tensor loss = model["a"] * 1;
    if (step > 0) {
      loss = loss + model["late"] * 4;
    }
    loss.backward();
    optimizer.step();
  }
  EXPECT_EQ(values_of(model["late"]), Values{1 - 4 - (0.5 * 4 + 0.5 * 4)});
}

Values held_with(const SGDOptions& options, const Precision& precision) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {64}}});
  Parallel parallel(model, group, {.stage = Stage::single, .precision = precision});
  const SGD optimizer = parallel.sgd(options);
  return {static_cast<double>(parallel.held().optimizer)};
}

TEST(SGD, MomentumCosts4BytesAndNothingWithoutIt) {
  EXPECT_EQ(held_with({.momentum = 0.9}, Precision::f32()), Values{64 * 4});
  EXPECT_EQ(held_with({}, Precision::f32()), Values{0});
  EXPECT_EQ(held_with({.momentum = 0.9}, Precision::bf16_mixed()), Values{64 * 8});
  EXPECT_EQ(held_with({}, Precision::bf16_mixed()), Values{64 * 4});
}

TEST(SGD, A23b_fp32_master_keeps_small_updates) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {1}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single, .precision = Precision::bf16_mixed()});
  SGD optimizer = parallel.sgd({.lr = 0.001});
  for (int step = 0; step < 500; ++step) {
    model["w"].sum().backward();
    optimizer.step();
  }
  EXPECT_NEAR(parallel.full_parameter("w").item<double>(), 0.5, 1e-4);
  EXPECT_EQ(model["w"].item<double>(), 0.5);
}

TEST(SGD, RefusesWhatItCannotDo) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {}}});
  Parallel parallel(model, group, {.stage = Stage::single});
  EXPECT_NE(error_of([&] { parallel.sgd({.nesterov = true}); }).find("momentum > 0"),
            std::string::npos);
  SGD optimizer = parallel.sgd({.lr = 0.1});
  dynamic_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).momentum(0.9);
  model["w"].backward();
  EXPECT_NE(error_of([&] { optimizer.step(); }).find("momentum was set after"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
