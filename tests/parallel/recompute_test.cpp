#include "lockstep/recompute.h"

#include "lockstep/parallel.h"
#include "lockstep/unit.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"
#include "parallel/unit_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace lockstep {
namespace {

using test::append;
using test::error_of;
using test::run;
using test::values_of;

using Values = std::vector<double>;

// Dropout, a batch norm, arguments of several kinds, and an output of several tensors.
struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    linear = register_module("linear", torch::nn::Linear(8, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    drop = register_module("drop", torch::nn::Dropout(0.3));
  }
  // x: [samples, 8]; `skip` is added to the first of the outputs, both [samples, 8].
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x,
                                                   const std::optional<torch::Tensor>& skip,
                                                   double factor) {
    ++passes;
    const torch::Tensor y = drop(norm(linear(x))) * factor;
    return {skip ? y + *skip : y, y.detach().abs()};
  }
  torch::nn::Linear linear{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  int passes = 0;
};
TORCH_MODULE(Block);

struct NetImpl : test::UnitBlocks<Block> {
  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = first(input);
    torch::Tensor extra;
    for (auto& block : blocks) {
      const torch::Tensor before = x;
      std::tie(x, extra) = block(x, std::optional(before), 1.5);
    }
    return x + extra;
  }
  int passes() const {
    int all = 0;
    for (const auto& block : blocks) {
      all += block->passes;
    }
    return all;
  }
};
TORCH_MODULE(Net);

// Weights, buffers, norms and what the generator draws next.
Values train(Group& group, const ParallelOptions& options, bool by_hand) {
  torch::manual_seed(5);
  Net net;
  Parallel parallel(net, group, options);
  SGD optimizer = parallel.sgd({.lr = 0.1, .momentum = 0.5});
  Values result;
  const auto pass = [&](std::int64_t leaf) {
    const auto x = torch::sin(torch::arange(48).reshape({6, 8}) + static_cast<double>(leaf));
    (net(x) - 1).pow(2).mean().backward();
  };
  for (int step = 0; step < 4; ++step) {
    if (by_hand) {
      pass(step * group.size() + group.rank());
    } else {
      for (const MicroStep& micro : parallel.micro_steps(2)) {
        pass(micro.leaf);
      }
    }
    result.push_back(parallel.clip_grad_norm(0.5));
    optimizer.step();
  }
  for (const auto& item : net->named_parameters()) {
    append(result, values_of(parallel.full_parameter(item.key())));
  }
  for (const torch::Tensor& buffer : net->buffers()) {
    append(result, values_of(buffer));
  }
  append(result, values_of(torch::rand({4})));
  EXPECT_EQ(net->passes(), 3 * 4 * (by_hand ? 1 : 2) * (options.recompute ? 2 : 1));
  for (const auto& block : net->blocks) {
    EXPECT_EQ(block->forwards(), 4 * (by_hand ? 1 : 2));
  }
  return result;
}

TEST(Recompute, EndsWithTheSameBitsInEveryStageAndLoop) {
  for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
    for (const bool by_hand : {false, true}) {
      for (const bool overlap : {true, false}) {
        ParallelOptions options{.stage = stage, .bucket_mb = 0, .seed = 9};
        options.overlap = overlap;
        const auto plain = run(2, [&](Group& group) { return train(group, options, by_hand); });
        options.recompute = true;
        EXPECT_EQ(run(2, [&](Group& group) { return train(group, options, by_hand); }), plain)
            << name_of(stage) << by_hand << overlap;
      }
    }
  }
}

// A unit alone, with what a Parallel would set.
struct Alone {
  Alone() { unit->recompute(hook, "h.3"); }
  std::shared_ptr<std::function<void()>> hook =
      std::make_shared<std::function<void()>>([this] { ++told; });
  Unit<Block> unit;
  int told = 0;
};

torch::Tensor input() { return torch::arange(16.0).reshape({2, 8}).requires_grad_(); }

TEST(Recompute, KeepsNoGraphUntilBackward) {
  Alone alone;
  const torch::Tensor x = input();
  const auto [out, other] = alone.unit(x, std::optional<torch::Tensor>(), 2.0);
  EXPECT_EQ(alone.unit->passes, 1);
  EXPECT_EQ(out.grad_fn()->next_edges().at(0).function, torch::autograd::impl::grad_accumulator(x));
  out.sum().backward();
  EXPECT_EQ(alone.unit->passes, 2);
  EXPECT_EQ(alone.told, 1);
  EXPECT_TRUE(x.grad().defined());
}

// Nothing to differentiate: one plain pass, whose outputs need no gradient.
TEST(Recompute, PassesWithoutGradientsAreNotRepeated) {
  Alone alone;
  {
    const torch::NoGradGuard no_grad;
    const auto [out, other] = alone.unit(input(), std::optional<torch::Tensor>(), 2.0);
    EXPECT_FALSE(out.requires_grad());
  }
  for (torch::Tensor& parameter : alone.unit->parameters()) {
    parameter.set_requires_grad(false);
  }
  const auto [out, other] = alone.unit(input().detach(), std::optional<torch::Tensor>(), 2.0);
  EXPECT_FALSE(out.requires_grad());
  EXPECT_EQ(alone.unit->passes, 2);
}

// Only parameters need one.
TEST(Recompute, ReachesParametersBehindInputsThatNeedNoGradient) {
  Alone alone;
  const auto [out, other] = alone.unit(input().detach(), std::optional<torch::Tensor>(), 2.0);
  out.sum().backward();
  EXPECT_TRUE(alone.unit->linear->weight.grad().defined());
}

TEST(Recompute, RepeatsForARetainedGraphAndRefusesASecondBackwardOtherwise) {
  Alone alone;
  const torch::Tensor x = input();
  const auto [out, other] = alone.unit(x, std::optional<torch::Tensor>(), 2.0);
  const torch::Tensor loss = out.pow(2).sum();
  loss.backward({}, /*keep_graph=*/true);
  const Values once = values_of(x.grad());
  loss.backward();
  const Values twice = values_of(x.grad());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(twice[i], 2 * once[i]);
  }
  const auto [again, more] = alone.unit(x, std::optional<torch::Tensor>(), 2.0);
  again.sum().backward();
  EXPECT_EQ(error_of([&, again = again] { again.sum().backward(); }),
            "recompute: unit 'h.3': a second backward through the same graph; give retain_graph to "
            "the first");
}

TEST(Recompute, RefusesWhatASecondPassCanNotTellApart) {
  Alone alone;
  const torch::Tensor x = input();
  const auto output = [&] {
    return std::get<0>(alone.unit(x, std::optional<torch::Tensor>(), 2.0)).sum();
  };
  EXPECT_NE(
      error_of([&] { output().backward({}, true, /*create_graph=*/true); }).find("create_graph"),
      std::string::npos);
  EXPECT_NE(error_of([&] { torch::autograd::grad({output()}, {x}); }).find("autograd::grad"),
            std::string::npos);
  const torch::Tensor late = output();
  {
    const torch::NoGradGuard no_grad;
    x.add_(1);
  }
  EXPECT_NE(error_of([&] { late.backward(); }).find("unit 'h.3': tensor 0 "), std::string::npos);
}

// Its output grows with every pass.
struct GrowingImpl : torch::nn::Module {
  explicit GrowingImpl(bool outputs) : outputs_grow(outputs) {
    weight = register_parameter("weight", torch::ones({1}));
  }
  std::vector<torch::Tensor> forward(const torch::Tensor& x) {
    ++passes;
    const torch::Tensor y = (x * weight).repeat({outputs_grow ? 1 : passes});
    return std::vector<torch::Tensor>(static_cast<std::size_t>(outputs_grow ? passes : 1), y);
  }
  bool outputs_grow;
  std::int64_t passes = 0;
  torch::Tensor weight;
};
TORCH_MODULE(Growing);

TEST(Recompute, RefusesASecondPassWithOtherOutputs) {
  for (const bool outputs : {true, false}) {
    Unit<Growing> unit(outputs);
    unit->recompute(std::make_shared<const std::function<void()>>([] {}), "h.3");
    const auto result = unit(torch::ones({2}));
    const std::string error = error_of([&] { result[0].sum().backward(); });
    EXPECT_NE(error.find("unit 'h.3': its second forward gave other outputs"), std::string::npos)
        << error;
  }
}

TEST(Recompute, ErrorsInAParallelNameItsUnit) {
  Group alone = Group::alone();
  ParallelOptions options{.stage = Stage::single};
  options.recompute = true;
  Net net;
  Parallel parallel(net, alone, options);
  const std::string error = error_of([&] {
    net(torch::ones({2, 8})).sum().backward({}, true, /*create_graph=*/true);
  });
  EXPECT_NE(error.find("recompute: unit 'block2': backward with create_graph"), std::string::npos)
      << error;
}

// An output that is an argument, and one that shares its memory.
struct PassingImpl : torch::nn::Module {
  PassingImpl() { weight = register_parameter("weight", torch::ones({1})); }
  std::vector<torch::Tensor> forward(const torch::Tensor& x, const torch::Tensor& other) {
    return {x, other, (x * weight).view({2, 1}), torch::Tensor(), weight};
  }
  torch::Tensor weight;
};
TORCH_MODULE(Passing);

TEST(Recompute, OutputsMayBeArgumentsViewsOrUndefined) {
  Unit<Passing> unit;
  unit->recompute(std::make_shared<const std::function<void()>>([] {}), "h.3");
  const torch::Tensor x = torch::tensor({2.0, 3.0}).requires_grad_();
  const torch::Tensor other = torch::ones({2});
  const auto outputs = unit(x, other);
  EXPECT_FALSE(other.requires_grad());
  EXPECT_FALSE(outputs[3].defined());
  EXPECT_TRUE(unit->weight.is_leaf());
  torch::Tensor changed = outputs[0];
  for (torch::Tensor tensor : {changed, outputs[2]}) {
    tensor.mul_(2);  // as one may without
  }
  EXPECT_EQ(values_of(x), (Values{2, 3}));
  (changed.sum() + outputs[2].sum() + outputs[4].sum()).backward();
  EXPECT_EQ(values_of(x.grad()), (Values{4, 4}));
  EXPECT_EQ(values_of(unit->weight.grad()), Values{11});
}

// Its gradients come in two backwards of one leaf; no parameter is unused, so buckets fill early.
struct TwiceImpl : torch::nn::Module {
  TwiceImpl() {
    first = register_module("first", Unit<torch::nn::Linear>(8, 8));
    twice = register_module("twice", Unit<torch::nn::Linear>(8, 8));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return twice(torch::gelu(twice(torch::gelu(first(x)))));
  }
  Unit<torch::nn::Linear> first{nullptr};
  Unit<torch::nn::Linear> twice{nullptr};
};
TORCH_MODULE(Twice);

Values train_twice(Group& group, const ParallelOptions& options) {
  torch::manual_seed(5);
  Twice model;
  Parallel parallel(model, group, options);
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  Values result;
  for (int step = 0; step < 3; ++step) {
    for (const MicroStep& micro : parallel.micro_steps(2)) {
      const auto x =
          torch::sin(torch::arange(48).reshape({6, 8}) + static_cast<double>(micro.leaf));
      model(x.to(model->first->weight.scalar_type())).pow(2).mean().backward();
    }
    result.push_back(parallel.grad_norm());
    optimizer.step();
  }
  for (const auto& item : model->named_parameters()) {
    append(result, values_of(parallel.full_parameter(item.key())));
  }
  return result;
}

TEST(Recompute, OfAUnitThatRunsTwiceChangesNoBit) {
  for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
    for (const Precision& precision : {Precision::f32(), Precision::bf16_mixed()}) {
      ParallelOptions options{.stage = stage, .precision = precision, .bucket_mb = 0};
      const auto plain = run(2, [&](Group& group) { return train_twice(group, options); });
      options.recompute = true;
      EXPECT_EQ(run(2, [&](Group& group) { return train_twice(group, options); }), plain)
          << name_of(stage);
    }
  }
}

// A unit in a unit, whose own passes count once though it runs three times.
struct OuterImpl : torch::nn::Module {
  OuterImpl() { inner = register_module("inner", Unit<Block>()); }
  torch::Tensor forward(const torch::Tensor& x) {
    return std::get<0>(inner(x, std::optional<torch::Tensor>(), 1.0));
  }
  Unit<Block> inner{nullptr};
};
TORCH_MODULE(Outer);

TEST(Recompute, UnitsInUnitsCountTheirPassesOnce) {
  Group alone = Group::alone();
  Unit<Outer> outer;
  torch::nn::Sequential model(outer);
  ParallelOptions options{.stage = Stage::single};
  options.recompute = true;
  Parallel parallel(model, alone, options);
  model->forward(torch::ones({2, 8})).sum().backward();
  EXPECT_EQ(outer->inner->forwards(), 1);
  EXPECT_EQ(outer->inner->passes, 3);
}

struct WindowedImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, torch::IntArrayRef window,
                        std::vector<torch::Tensor>& losses) {
    losses.push_back(x.sum());
    return x * window[0];
  }
};
TORCH_MODULE(Windowed);

TEST(Recompute, RefusesArgumentsThatItCanNotGiveAgain) {
  Unit<Windowed> unit;
  unit->recompute(std::make_shared<const std::function<void()>>([] {}), "h.3");
  std::vector<torch::Tensor> losses;
  const std::vector<std::int64_t> window{2};
  const torch::Tensor x = torch::ones({2}).requires_grad_();
  EXPECT_NE(
      error_of([&] { unit(x, torch::IntArrayRef(window), losses); }).find("forward of unit 'h.3'"),
      std::string::npos);
}

struct CollectingImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>& losses) {
    losses.push_back(x.sum());
    return x * 2;
  }
};
TORCH_MODULE(Collecting);

TEST(Recompute, RefusesTensorsLeftInArguments) {
  Unit<Collecting> unit;
  unit->recompute(std::make_shared<const std::function<void()>>([] {}), "h.3");
  std::vector<torch::Tensor> losses;
  const torch::Tensor x = torch::ones({2}).requires_grad_();
  EXPECT_NE(error_of([&] { unit(x, losses); }).find("unit 'h.3' changed which tensors"),
            std::string::npos);
}

TEST(Recompute, AModuleWithoutUnitsIsRefused) {
  Group alone = Group::alone();
  ParallelOptions options{.stage = Stage::single};
  options.recompute = true;
  EXPECT_NE(error_of([&] {
              Parallel(torch::nn::Linear(2, 2), alone, options);
            }).find("has no unit to recompute"),
            std::string::npos);
}

// Graphs and units may outlive the Parallel.
TEST(Recompute, EndsWithTheParallel) {
  Group alone = Group::alone();
  Net net;
  torch::Tensor loss;
  {
    ParallelOptions options{.stage = Stage::single};
    options.recompute = true;
    Parallel parallel(net, alone, options);
    loss = net(torch::ones({2, 8})).sum();
  }
  loss.backward();
  EXPECT_EQ(net->passes(), 6);
  net(torch::ones({2, 8})).sum().backward();
  EXPECT_EQ(net->passes(), 9);
}

}  // namespace
}  // namespace lockstep
