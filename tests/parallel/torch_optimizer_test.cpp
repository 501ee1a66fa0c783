#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <limits>

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

Perceptron seeded_model() {
  torch::manual_seed(11);
  return Perceptron(16, 2);
}

torch::Tensor loss_of(Perceptron& model, std::int64_t sample) {
  return (model(torch::full({2, 16}, 0.1 * static_cast<double>(sample % 7 + 1))) - 1).pow(2).mean();
}

Values weights_of(Perceptron& model) {
  Values result;
  for (const torch::Tensor& parameter : model->parameters()) {
    append(result, values_of(parameter));
  }
  return result;
}

template <class Optimizer, class Options>
void expect_equals_plain_torch(const Options& options) {
  for (const Values& values : run(2, [&](Group& group) {
         Perceptron ours = seeded_model();
         Perceptron theirs = seeded_model();
         Parallel parallel(ours, group, {.stage = Stage::ddp});
         auto optimizer = parallel.optimizer<Optimizer>(options);
         Optimizer reference(theirs->parameters(), options);
         for (std::int64_t step = 0; step < 10; ++step) {
           loss_of(ours, 2 * step + group.rank()).backward();
           optimizer.step();
           reference.zero_grad();
           ((loss_of(theirs, 2 * step) + loss_of(theirs, 2 * step + 1)) / 2).backward();
           reference.step();
         }
         Values differences;
         const Values mine = weights_of(ours);
         const Values expected = weights_of(theirs);
         for (std::size_t i = 0; i < mine.size(); ++i) {
           differences.push_back(std::abs(mine[i] - expected[i]));
         }
         return Values{*std::ranges::max_element(differences), mine[0]};
       })) {
    EXPECT_LE(values.at(0), 1e-5);
  }
}

TEST(TorchOptimizer, RmspropEqualsPlainTorch) {
  expect_equals_plain_torch<torch::optim::RMSprop>(
      torch::optim::RMSpropOptions(1e-3).momentum(0.9));
}
TEST(TorchOptimizer, AdagradEqualsPlainTorch) {
  expect_equals_plain_torch<torch::optim::Adagrad>(torch::optim::AdagradOptions(1e-2));
}
TEST(TorchOptimizer, AdamWithAmsgradEqualsPlainTorch) {
  expect_equals_plain_torch<torch::optim::Adam>(torch::optim::AdamOptions(1e-3).amsgrad(true));
}

TEST(TorchOptimizer, RanksStepIdenticallyAndClippingScalesGrad) {
  const auto all = run(2, [](Group& group) {
    Perceptron model = seeded_model();
    Parallel parallel(model, group, {.stage = Stage::ddp});
    auto optimizer = parallel.optimizer<torch::optim::SGD>(torch::optim::SGDOptions(1.0));
    const auto before = model->linears[0]->weight.detach().clone();
    loss_of(model, group.rank()).backward();
    const double norm = parallel.clip_grad_norm(1e-3);
    optimizer.step();
    Values result{norm};
    double moved = 0;
    for (const torch::Tensor& parameter : model->parameters()) {
      append(result, values_of(parameter));
    }
    moved = (model->linears[0]->weight - before).norm().item<double>();
    result.push_back(moved);
    return result;
  });
  EXPECT_EQ(all[0], all[1]);
  EXPECT_GT(all[0][0], 1e-2);
  EXPECT_GT(all[0].back(), 0);
  EXPECT_LE(all[0].back(), 1e-3);
}

TEST(TorchOptimizer, A26_not_finite_on_one_rank_skips_the_step_everywhere) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}}, 1.0);
         Parallel parallel(model, group, {.stage = Stage::ddp});
         auto optimizer = parallel.optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.5));
         Values result;
         for (int step = 0; step < 3; ++step) {
           const bool bad = step == 1 && group.rank() == 1;
           (model["w"] * (bad ? std::numeric_limits<double>::infinity() : 1.0)).backward();
           optimizer.step();
           append(result, values_of(model["w"]));
           result.push_back(parallel.last_step().skipped);
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{0.5, 0, 0.5, 1, 0, 0}));
  }
}

TEST(TorchOptimizer, A23b_bf16_parameters_are_updated_in_their_masters) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {1}}, {"v", {3}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single, .precision = Precision::bf16_mixed()});
  auto optimizer = parallel.optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.001));
  for (int step = 0; step < 500; ++step) {
    (model["w"].sum() + 0.5 * model["v"].sum()).backward();
    optimizer.step();
  }
  EXPECT_NEAR(parallel.full_parameter("w").item<double>(), 0.5, 1e-4);
  EXPECT_EQ(model["w"].item<double>(), 0.5);
  EXPECT_EQ(values_of(model["v"]), Values(3, 0.75));
  EXPECT_EQ(model["w"].scalar_type(), torch::kBFloat16);
}

TEST(TorchOptimizer, UnusedParametersStayAndLateOnesAreRefusedByName) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {}}, {"unused", {}}, {"late", {}}}, 1.0);
  model["late"].set_requires_grad(false);
  Parallel parallel(model, group, {.stage = Stage::single});
  auto optimizer = parallel.optimizer<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1));
  model["w"].backward();
  optimizer.step();
  EXPECT_EQ(values_of(model["unused"]), Values{1});
  EXPECT_LT(model["w"].item<double>(), 1);
  model["late"].set_requires_grad(true);
  (model["w"] + model["late"]).backward();
  EXPECT_NE(error_of([&] { optimizer.step(); }).find("'late' was unfrozen"), std::string::npos);
}

TEST(TorchOptimizer, ClosureAndZeroGrad) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {}}}, 2.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  auto optimizer = parallel.optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.5));
  const torch::Tensor loss = optimizer.step([&] {
    (model["w"] * 100).backward();
    optimizer.zero_grad();
    torch::Tensor value = model["w"] * 3;
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<double>(), 6.0);
  EXPECT_EQ(values_of(model["w"]), Values{0.5});
}

}  // namespace
}  // namespace lockstep
