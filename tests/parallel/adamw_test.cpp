#include "lockstep/parallel.h"
#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep {
namespace {

using test::Parameters;
using test::Perceptron;
using test::Shapes;
using test::values_of;

const AdamWOptions kOptions{
    .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.3};

torch::Tensor loss_of(Perceptron& model, int step) {
  const auto dtype = model->norm->weight.scalar_type();
  return (model(torch::ones({2, 16}, dtype) * (1 + step % 3)) - 1).pow(2).mean();
}

Perceptron seeded_model() {
  torch::manual_seed(11);
  return Perceptron(16, 2);
}

void expect_close(const torch::nn::Module& actual, const torch::nn::Module& expected) {
  for (const auto& item : expected.named_parameters()) {
    const torch::Tensor other = actual.named_parameters()[item.key()];
    EXPECT_TRUE(torch::allclose(other, item.value(), 1e-6, 1e-7))
        << item.key() << " differs by " << (other - item.value()).abs().max().item<double>();
  }
}

TEST(AdamW, StepsAsTorchDoes) {
  Group group = Group::alone();
  Perceptron ours = seeded_model();
  Perceptron theirs = seeded_model();
  ours->to(torch::kFloat64);  // so that only the clip factor, which is fp32, may differ
  theirs->to(torch::kFloat64);
  Parallel parallel(ours, group, {.stage = Stage::single});
  AdamW optimizer = parallel.adamw(kOptions);
  torch::optim::AdamW reference(
      theirs->parameters(),
      torch::optim::AdamWOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.3));
  for (int step = 0; step < 20; ++step) {
    loss_of(ours, step).backward();
    const double norm = parallel.clip_grad_norm(0.7);
    optimizer.step();
    reference.zero_grad();
    loss_of(theirs, step).backward();
    EXPECT_NEAR(norm, torch::nn::utils::clip_grad_norm_(theirs->parameters(), 0.7), 1e-6);
    reference.step();
  }
  expect_close(*ours, *theirs);
}

TEST(AdamW, ParameterGroupsDecayByPredicateAndFollowSchedulers) {
  Group group = Group::alone();
  Parameters model(Shapes{{"matrix", {2, 2}}, {"bias", {2}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  AdamWOptions options{.lr = 0.5, .weight_decay = 0.1};
  options.decays = [](const std::string&, const torch::Tensor& tensor) { return tensor.dim() > 1; };
  AdamW optimizer = parallel.adamw(options);
  torch::optim::StepLR scheduler(optimizer, 1, 0.1);
  ASSERT_EQ(optimizer.param_groups().size(), 2u);
  scheduler.step();  // LibTorch's first call leaves the rate alone
  scheduler.step();
  EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 0.05, 1e-12);
  // A zero gradient moves nothing but the decay: 1 − lr·decay.
  (model["matrix"].sum() * 0 + model["bias"].sum() * 0).backward();
  optimizer.step();
  EXPECT_NEAR(model["matrix"][0][0].item<double>(), 1 - 0.05 * 0.1, 1e-7);
  EXPECT_EQ(model["bias"][0].item<double>(), 1.0);
  optimizer.set_lr(0.25);
  for (const auto& parameter_group : optimizer.param_groups()) {
    EXPECT_EQ(parameter_group.options().get_lr(), 0.25);
  }
}

TEST(AdamW, ClosureIsCalledAndItsLossReturned) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {}}}, 2.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  AdamW optimizer = parallel.adamw({.lr = 0.1});
  const torch::Tensor loss = optimizer.step([&] {
    torch::Tensor value = model["w"] * 3;
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<double>(), 6.0);
  EXPECT_LT(model["w"].item<double>(), 2.0);
}

TEST(AdamW, SavedStateContinuesBitForBit) {
  Group group = Group::alone();
  std::stringstream file;
  std::vector<torch::Tensor> weights;
  Perceptron first = seeded_model();
  {
    Parallel parallel(first, group, {.stage = Stage::single});
    AdamW optimizer = parallel.adamw(kOptions);
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        torch::serialize::OutputArchive archive;
        optimizer.save(archive);
        archive.save_to(file);
        for (const torch::Tensor& parameter : first->parameters()) {
          weights.push_back(parameter.detach().clone());
        }
      }
      loss_of(first, step).backward();
      optimizer.step();
    }
  }
  Perceptron second = seeded_model();
  {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      second->parameters()[i].copy_(weights[i]);
    }
  }
  Parallel parallel(second, group, {.stage = Stage::single});
  AdamW optimizer = parallel.adamw(kOptions);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  optimizer.load(archive);
  for (int step = 3; step < 6; ++step) {
    loss_of(second, step).backward();
    optimizer.step();
  }
  for (const auto& item : first->named_parameters()) {
    EXPECT_EQ(values_of(item.value()), values_of(second->named_parameters()[item.key()]));
  }
}

TEST(AdamW, FlatStateIsReadAndWrittenByName) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2, 3}}, {"unused", {4}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  AdamW optimizer = parallel.adamw({.beta1 = 0.9});
  (model["w"] * 2).sum().backward();
  optimizer.step();
  OptimizerState& state = optimizer.flat_state();
  EXPECT_EQ(state.kind(), "adamw");
  ASSERT_EQ(state.slots(), (std::vector<std::string>{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(state.elements("exp_avg", "w").sizes(), torch::IntArrayRef({6}));
  EXPECT_NEAR(state.elements("exp_avg", "w")[5].item<double>(), 0.2, 1e-7);
  EXPECT_NEAR(state.elements("exp_avg_sq", "w")[5].item<double>(), 0.004, 1e-7);
  EXPECT_EQ(state.updates("w"), 1);
  EXPECT_EQ(state.updates("unused"), 0);
  state.elements("exp_avg", "w").fill_(7);
  state.set_updates("w", 12);
  EXPECT_EQ(state.updates("w"), 12);
  EXPECT_EQ(values_of(state.elements("exp_avg", "w")), std::vector<double>(6, 7.0));
  EXPECT_EQ(values_of(state.elements("exp_avg", "unused")), std::vector<double>(4, 0.0));
  EXPECT_THROW(state.updates("v"), UsageError);
}

TEST(AdamW, GraphKeptAcrossAStepIsAnError) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  AdamW optimizer = parallel.adamw();
  const torch::Tensor loss = (model["w"] * model["w"]).sum();
  loss.backward({}, /*retain_graph=*/true);
  optimizer.step();
  EXPECT_THROW(loss.backward(), c10::Error);
}

}  // namespace
}  // namespace lockstep
