// What adamw() and sgd() share: groups by predicate, schedulers, closures, state.
#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep {
namespace {

using test::append;
using test::error_of;
using test::Parameters;
using test::run;
using test::Shapes;
using test::values_of;

using Values = std::vector<double>;

bool is_matrix(const std::string&, const torch::Tensor& tensor) { return tensor.dim() > 1; }
bool is_head(const std::string& name, const torch::Tensor&) { return name.starts_with("head"); }

Shapes shapes() { return {{"body", {2, 2}}, {"bias", {2}}, {"head", {2, 2}}, {"head_bias", {2}}}; }

// Zero gradients: what moves is the decay alone.
void step_without_gradient(Parameters& model, torch::optim::Optimizer& optimizer) {
  torch::Tensor loss = torch::zeros({});
  for (const torch::Tensor& parameter : model->parameters()) {
    loss = loss + parameter.sum() * 0;
  }
  loss.backward();
  optimizer.step();
}

Values firsts(Parameters& model) {
  Values result;
  for (const torch::Tensor& parameter : model->parameters()) {
    result.push_back(parameter.reshape({-1})[0].item<double>());
  }
  return result;
}

// LibTorch would give a group whose option equals the option's default the optimizer's own instead.
TEST(FlatOptimizer, GroupsKeepTheirOptionsWhereTheyEqualLibTorchsDefaults) {
  Group group = Group::alone();
  {
    Parameters model(shapes(), 1.0);
    Parallel parallel(model, group, {.stage = Stage::single});
    SGD optimizer =
        parallel.sgd({.lr = 0.5, .momentum = 0.5, .weight_decay = 0.25, .decays = is_matrix},
                     {{is_head, {.lr = 0.125, .weight_decay = 0.0}}});
    ASSERT_EQ(optimizer.param_groups().size(), 3u);
    step_without_gradient(model, optimizer);
    EXPECT_EQ(firsts(model), (Values{1 - 0.125, 1, 1, 1}));
  }
  {
    Parameters model(shapes(), 1.0);
    Parallel parallel(model, group, {.stage = Stage::single});
    AdamW optimizer = parallel.adamw({.lr = 0.5, .weight_decay = 0.25},
                                     {{is_head, {.lr = 0.125, .weight_decay = 1e-2}}});
    step_without_gradient(model, optimizer);
    const Values values = firsts(model);
    EXPECT_NEAR(values[0], 1 - 0.125, 1e-6);
    EXPECT_NEAR(values[2], 1 - 0.125 * 1e-2, 1e-6);
  }
}

TEST(FlatOptimizer, GroupsSplitByDecayAndTheFirstPredicateWins) {
  Group group = Group::alone();
  Parameters model(shapes(), 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  const auto all = [](const std::string&, const torch::Tensor&) { return true; };
  AdamW optimizer = parallel.adamw(
      {.lr = 1},
      {{is_head, {.lr = 2, .weight_decay = 0.5, .decays = is_matrix}}, {all, {.lr = 3}}});
  Values rates;
  Values sizes;
  for (const auto& one : optimizer.param_groups()) {
    rates.push_back(one.options().get_lr());
    sizes.push_back(static_cast<double>(one.params().size()));
  }
  EXPECT_EQ(rates, (Values{1, 2, 2, 3}));
  EXPECT_EQ(sizes, (Values{0, 1, 1, 2}));
}

TEST(FlatOptimizer, SchedulersOfTorchSetTheRates) {
  Group group = Group::alone();
  Parameters model(shapes(), 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd({.lr = 0.5}, {{is_head, {.lr = 0.25}}});
  torch::optim::StepLR steps(optimizer, 2, 0.5);
  torch::optim::ReduceLROnPlateauScheduler plateau(
      optimizer, torch::optim::ReduceLROnPlateauScheduler::SchedulerMode::min, 0.5F, 0);
  for (int i = 0; i < 4; ++i) {
    steps.step();
  }
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.25);
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0.125);
  for (int i = 0; i < 2; ++i) {
    plateau.step(1.0F);
  }
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.125);
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0.0625);
  (model["body"].sum() + model["head"].sum()).backward();
  optimizer.step();
  EXPECT_EQ(firsts(model), (Values{1 - 0.125, 1, 1 - 0.0625, 1}));
}

TEST(FlatOptimizer, ClosureRunsOnceAndItsGradientIsExchanged) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}}, 2.0);
         Parallel parallel(model, group, {.stage = Stage::ddp});
         SGD optimizer = parallel.sgd({.lr = 0.5});
         int calls = 0;
         Values result;
         for (int step = 0; step < 2; ++step) {
           const torch::Tensor loss = optimizer.step([&] {
             ++calls;
             optimizer.zero_grad();
             torch::Tensor value = model["w"] * (group.rank() + 1.0);
             value.backward();
             return value / (group.rank() + 1.0);
           });
           append(result, values_of(loss));
         }
         append(result, values_of(model["w"]));
         result.push_back(calls);
         return result;
       })) {
    EXPECT_EQ(values, (Values{2, 1.25, 0.5, 2}));
  }
}

TEST(FlatOptimizer, StateIsReadAndWrittenByName) {
  Group group = Group::alone();
  Parameters model(Shapes{{"a", {2}}, {"b", {}}});
  Parallel parallel(model, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd({.lr = 1, .momentum = 0.5});
  (model["a"].sum() * 3 + model["b"]).backward();
  optimizer.step();
  OptimizerState& state = optimizer.flat_state();
  EXPECT_EQ(state.kind(), "sgd");
  EXPECT_EQ(state.updates("a"), 1);
  ASSERT_EQ(state.slots(), std::vector<std::string>{"momentum_buffer"});
  EXPECT_EQ(values_of(state.elements("momentum_buffer", "a")), (Values{3, 3}));
  state.elements("momentum_buffer", "a").fill_(8);
  state.set_updates("a", 5);
  (model["a"].sum() * 0).backward();
  optimizer.step();
  EXPECT_EQ(values_of(model["a"]), (Values{-3 - 4, -3 - 4}));
  EXPECT_EQ(state.updates("a"), 6);
  EXPECT_EQ(state.updates("b"), 1);
  EXPECT_NE(error_of([&] { state.updates("c"); }).find("'c'"), std::string::npos);
  EXPECT_NE(error_of([&] { state.elements("exp_avg", "a"); }).find("'exp_avg'"), std::string::npos);
}

// Saved where b was unfrozen late, loaded where it was trained from the start: other buckets.
TEST(FlatOptimizer, SavedStateFindsItsParametersByName) {
  Group group = Group::alone();
  std::stringstream file;
  const auto train = [](Parameters& model, SGD& optimizer, int steps) {
    for (int step = 0; step < steps; ++step) {
      (model["a"] * 2 + model["b"] * 3 + model["c"] * 5).backward();
      optimizer.step();
    }
  };
  const SGDOptions options{.lr = 1, .momentum = 0.5};
  const Shapes three{{"a", {}}, {"b", {}}, {"c", {}}};
  Parameters first(three);
  Parallel one(first, group, {.stage = Stage::single});
  {
    Parameters late(three);
    late["b"].set_requires_grad(false);
    Parallel parallel(late, group, {.stage = Stage::single});
    SGD optimizer = parallel.sgd(options);
    (late["a"] * 2 + late["c"] * 5).backward();
    optimizer.step();
    late["b"].set_requires_grad(true);
    train(late, optimizer, 1);
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    archive.save_to(file);
  }
  SGD optimizer = one.sgd(options);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  optimizer.load(archive);
  Values momenta;
  for (const char* name : {"a", "b", "c"}) {
    append(momenta, values_of(optimizer.flat_state().elements("momentum_buffer", name)));
  }
  EXPECT_EQ(momenta, (Values{3, 3, 7.5}));
  EXPECT_EQ(optimizer.flat_state().updates("b"), 1);
}

}  // namespace
}  // namespace lockstep
