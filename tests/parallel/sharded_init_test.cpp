#include "lockstep/sharded_init.h"

#include "lockstep/unit.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using test::append;
using test::run;
using test::values_of;

using Values = std::vector<double>;

// Draws, dropout's too; a parameter of each kind that a unit may have.
struct DrawnBlockImpl : torch::nn::Module {
  explicit DrawnBlockImpl(std::int64_t width = 8) {
    linear = register_module("linear", torch::nn::Linear(width, width));
    norm = register_module("norm", torch::nn::BatchNorm1d(width));
    drop = register_module("drop", torch::nn::Dropout(0.2));
    shift = register_parameter("shift", torch::randn({width}));
    frozen = register_parameter("frozen", torch::rand({3}), /*requires_grad=*/false);
    precise = register_parameter("precise", torch::rand({5}, torch::kFloat64));
    empty = register_parameter("empty", torch::empty({0, 2}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return drop(torch::gelu(norm(linear(x)))) + shift + frozen.sum() +
           precise.sum().to(shift.scalar_type());
  }
  torch::nn::Linear linear{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::Tensor shift, frozen, precise, empty;
};
TORCH_MODULE(DrawnBlock);

// A unit with a unit in it, and parameters of its own before and behind.
struct OuterBlockImpl : torch::nn::Module {
  OuterBlockImpl() {
    before = register_parameter("before", torch::randn({8}));
    inner = register_module("inner", Unit<DrawnBlock>());
    behind = register_parameter("behind", torch::randn({8}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return inner(x * before) + behind; }
  Unit<DrawnBlock> inner{nullptr};
  torch::Tensor before, behind;
};
TORCH_MODULE(OuterBlock);

// What is outside of all units; the head is tied to a unit's weight.
struct DrawnNetImpl : torch::nn::Module {
  DrawnNetImpl() {
    first = register_module("first", torch::nn::Linear(8, 8));
    block = register_module("block", Unit<DrawnBlock>());
    outer = register_module("outer", Unit<OuterBlock>());
    tied = register_parameter("tied", block->linear->weight);
    last = register_parameter("last", torch::randn({8}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::linear(outer(block(first(x))), tied) * last;
  }
  torch::nn::Linear first{nullptr};
  Unit<DrawnBlock> block{nullptr};
  Unit<OuterBlock> outer{nullptr};
  torch::Tensor tied, last;
};
TORCH_MODULE(DrawnNet);

DrawnNet make_net(Group& group, const ParallelOptions& options, bool in_shards) {
  std::optional<ShardedInit> init;
  if (in_shards) {
    init.emplace(group, options);
  }
  return {};
}

// The weights at first, after two steps, and what the generator draws next.
Values train(Group& group, const ParallelOptions& options, bool in_shards, bool seeded_alike) {
  torch::manual_seed(seeded_alike ? 5 : static_cast<std::uint64_t>(group.rank()) + 5);
  DrawnNet net = make_net(group, options, in_shards);
  Values result = values_of(torch::rand({4}));
  net->block->linear->bias.set_requires_grad(false);  // frozen once it is freed
  Parallel parallel(net, group, options);
  AdamW optimizer = parallel.adamw({.lr = 0.1});
  const auto look = [&] {
    for (const auto& item : net->named_parameters()) {
      append(result, values_of(parallel.full_parameter(item.key())));
    }
    for (const auto& item : net->named_buffers()) {
      append(result, values_of(item.value()));
    }
  };
  look();
  for (int step = 0; step < 2; ++step) {
    for (const MicroStep& micro : parallel.micro_steps(2)) {
      const auto x =
          torch::sin(torch::arange(48).reshape({6, 8}) + static_cast<double>(micro.leaf));
      (net(x.to(net->first->weight.scalar_type())) - 1).pow(2).mean().backward();
    }
    result.push_back(parallel.clip_grad_norm(0.5));
    optimizer.step();
  }
  look();
  return result;
}

ParallelOptions zero3() { return {.stage = Stage::zero3}; }

ParallelOptions sharing(Stage stage) {
  ParallelOptions options{.stage = stage};
  options.share_parameters = true;
  return options;
}

void expect_same_bits(int ranks, const ParallelOptions& options, bool seeded_alike = true) {
  const auto train_in = [&](bool in_shards) {
    return run(ranks, [&](Group& group) { return train(group, options, in_shards, seeded_alike); });
  };
  EXPECT_EQ(train_in(true), train_in(false)) << name_of(options.stage) << ranks;
}

TEST(ShardedInit, EndsWithTheBitsOfAnOrdinaryModel) {
  for (const int ranks : {1, 2, 3}) {
    expect_same_bits(ranks, zero3());
  }
  for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
    ParallelOptions options = sharing(stage);
    options.precision = Precision::bf16_mixed([](const std::string& name) {
      return name == "last" || name.find("norm") != std::string::npos;
    });
    expect_same_bits(2, options);
  }
  ParallelOptions freeing = zero3();
  freeing.reshard = Reshard::always;
  freeing.unit_blocks = 2;
  expect_same_bits(2, freeing);
}

TEST(ShardedInit, RanksThatDrawOtherwiseGetRank0sValues) {
  expect_same_bits(3, zero3(), /*seeded_alike=*/false);
}

TEST(ShardedInit, DoesNothingWhereRanksKeepAll) {
  for (const Stage stage : {Stage::single, Stage::ddp, Stage::zero1, Stage::zero2}) {
    Group alone = Group::alone();
    const DrawnNet net = make_net(alone, {.stage = stage}, /*in_shards=*/true);
    EXPECT_GT(net->block->linear->weight.abs().sum().item<double>(), 0);
  }
}

// The text of LibTorch's exception, or of any other.
template <class Body>
std::string what_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ShardedInit, WhatIsFreedThrowsItsName) {
  Group alone = Group::alone();
  DrawnNet net = make_net(alone, zero3(), /*in_shards=*/true);
  const std::string freed = "is spread over the ranks by ShardedInit";
  const std::string text = what_of([&] { net->block->linear->weight.sum(); });
  EXPECT_NE(text.find("parameter 'linear.weight' of unit 0 ("), std::string::npos) << text;
  EXPECT_NE(text.find("DrawnBlockImpl"), std::string::npos) << text;
  EXPECT_NE(text.find(freed), std::string::npos) << text;
  // The unit around it knows more of its name.
  const std::string inner = what_of([&] { net->outer->inner->shift.sum(); });
  EXPECT_NE(inner.find("parameter 'inner.shift' of unit 2 ("), std::string::npos) << inner;
  const std::vector<std::function<void()>> uses{[&] {
                                                  net(torch::ones({2, 8}));
                                                },
                                                [&] { net->block->linear->to(torch::kFloat64); },
                                                [&] { net->outer->behind.clone(); },
                                                [&] { torch::nn::init::ones_(net->tied); }};
  for (const std::function<void()>& use : uses) {
    EXPECT_NE(what_of(use).find(freed), std::string::npos) << what_of(use);
  }
  // What is outside of all units is there, and so are buffers, shapes and types.
  net->first->forward(torch::ones({2, 8}));
  EXPECT_EQ(values_of(net->last).size(), 8u);
  EXPECT_EQ(net->block->norm->running_var.sum().item<double>(), 8);
  EXPECT_EQ(net->block->precise.scalar_type(), torch::kFloat64);
  EXPECT_EQ(net->block->linear->weight.sizes(), (std::vector<std::int64_t>{8, 8}));
  EXPECT_FALSE(net->block->frozen.requires_grad());
}

TEST(ShardedInit, CountsForItsScopeOnly) {
  Group alone = Group::alone();
  {
    const ShardedInit init(alone, zero3());
    {
      const ShardedInit inner(alone, {.stage = Stage::ddp});
      EXPECT_EQ(Unit<DrawnBlock>()->shift.sum().numel(), 1);
    }
    EXPECT_THROW(Unit<DrawnBlock>()->shift.sum(), c10::Error);
  }
  EXPECT_EQ(Unit<DrawnBlock>()->shift.sum().numel(), 1);
}

// Nobody has to make a Parallel; what was made stays as it is.
TEST(ShardedInit, AModelWithoutAParallelStaysFreed) {
  Group alone = Group::alone();
  const DrawnNet net = make_net(alone, zero3(), /*in_shards=*/true);
  { const ShardedInit another(alone, zero3()); }
  EXPECT_THROW(net->block->shift.sum(), c10::Error);
}

struct FailingBlockImpl : torch::nn::Module {
  FailingBlockImpl() {
    inner = register_module("inner", Unit<DrawnBlock>());
    throw std::runtime_error("the constructor of a block");
  }
  torch::Tensor forward(const torch::Tensor& x) { return inner(x); }
  Unit<DrawnBlock> inner{nullptr};
};
TORCH_MODULE(FailingBlock);

TEST(ShardedInit, AConstructorMayThrow) {
  run(2, [](Group& group) -> Values {
    std::optional<ShardedInit> init;
    init.emplace(group, zero3());
    EXPECT_EQ(what_of([] { Unit<FailingBlock>(); }), "the constructor of a block");
    DrawnNet net;
    init.reset();
    Parallel parallel(net, group, zero3());
    return values_of(parallel.full_parameter("outer.behind"));
  });
}

// Whatever was replaced or dropped since is not asked for.
TEST(ShardedInit, AReplacedParameterIsTakenAsItIs) {
  run(2, [](Group& group) -> Values {
    DrawnNet net = make_net(group, zero3(), /*in_shards=*/true);
    net->block->shift.set_data(torch::ones({8}));
    Parallel parallel(net, group, zero3());
    EXPECT_EQ(values_of(parallel.full_parameter("block.shift")), Values(8, 1.0));
    return {};
  });
}

std::vector<std::string> errors_of(int ranks, const std::function<void(Group&)>& body) {
  std::vector<std::string> errors;
  for (const auto& result : test::run_ranks(ranks, [&](Group& group) -> Values {
         at::set_num_threads(1);  // the parent's threads are not in this process
         body(group);
         return {};
       })) {
    errors.push_back(result.error);
  }
  return errors;
}

TEST(ShardedInit, ItsRanksAreThoseOfTheParallel) {
  for (const std::string& error : errors_of(2, [](Group& group) {
         Group alone = std::move(*group.split(group.rank(), 0));
         DrawnNet net = make_net(alone, zero3(), /*in_shards=*/true);
         Parallel(net, group, zero3());
       })) {
    EXPECT_NE(error.find("as shard 0 of 1, the Parallel has rank "), std::string::npos) << error;
  }
  for (const std::string& error : errors_of(2, [](Group& group) {
         Group turned = std::move(*group.split(0, -group.rank()));
         DrawnNet net = make_net(turned, zero3(), /*in_shards=*/true);
         Parallel(net, group, zero3());
       })) {
    EXPECT_NE(error.find("give both the same group"), std::string::npos) << error;
  }
}

TEST(ShardedInit, RanksThatBuildOtherwiseAreNamed) {
  for (const std::string& error : errors_of(2, [](Group& group) {
         const ShardedInit init(group, zero3());
         Unit<DrawnBlock>(group.rank() == 0 ? 8 : 16);
       })) {
    EXPECT_NE(error.find("of unit 0"), std::string::npos) << error;
  }
  for (const std::string& error : errors_of(2, [](Group& group) {
         DrawnNet net = make_net(group, zero3(), /*in_shards=*/true);
         if (group.rank() == 1) {
           net->block->shift.set_data(torch::ones({8}));
         }
         Parallel(net, group, zero3());
       })) {
    EXPECT_NE(error.find("'block.shift [8] Float trained in shards' on rank 0, 'block.shift [8] "
                         "Float trained' on rank 1"),
              std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace lockstep
