#include "parallel/resident_units.h"

#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"
#include "parallel/unit_blocks.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using test::append;
using test::run;
using test::values_of;

using Values = std::vector<double>;

// `unused` never takes part; forward throws for a single sample.
struct ReadBlockImpl : torch::nn::Module {
  ReadBlockImpl() {
    linear = register_module("linear", torch::nn::Linear(8, 8));
    unused = register_parameter("unused", torch::ones({3}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    if (x.size(0) == 1) {
      throw std::runtime_error("one sample");
    }
    return torch::gelu(linear(x));
  }
  torch::nn::Linear linear{nullptr};
  torch::Tensor unused;
};
TORCH_MODULE(ReadBlock);

// The second of three blocks is run twice.
struct ReadNetImpl : test::UnitBlocks<ReadBlock> {
  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = first(input);
    x = x + blocks[0](x);
    x = blocks[1](x) + blocks[1](x * 2);
    return blocks[2](x);
  }
};
TORCH_MODULE(ReadNet);

torch::Tensor input(std::int64_t leaf) {
  return torch::sin(torch::arange(48).reshape({6, 8}) + static_cast<double>(leaf));
}

ParallelOptions always() {
  ParallelOptions options{.stage = Stage::zero3};
  options.reshard = Reshard::always;
  return options;
}

// Of LibTorch's exception, or of any other.
template <class Body>
std::string what_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool readable(const torch::Tensor& tensor) {
  try {
    return tensor.const_data_ptr() != nullptr;
  } catch (const c10::Error&) {
    return false;
  }
}

Values train_freeing(Group& group, const ParallelOptions& options, bool by_hand) {
  torch::manual_seed(5);
  ReadNet net;
  Parallel parallel(net, group, options);
  SGD optimizer = parallel.sgd({.lr = 0.1, .momentum = 0.5});
  Values result;
  const auto in_dtype = [&](std::int64_t leaf) {
    return input(leaf).to(net->first->weight.scalar_type());
  };
  const auto pass = [&](std::int64_t leaf) { (net(in_dtype(leaf)) - 1).pow(2).mean().backward(); };
  const bool frees = options.reshard == Reshard::always;
  for (int step = 0; step < 4; ++step) {
    if (by_hand) {
      pass(step * group.size() + group.rank());
    } else {
      for (const MicroStep& micro : parallel.micro_steps(2)) {
        pass(micro.leaf);
      }
    }
    EXPECT_EQ(readable(net->blocks[1]->linear->weight), !frees);
    result.push_back(parallel.clip_grad_norm(0.5));
    optimizer.step();
    const torch::NoGradGuard no_grad;
    result.push_back(net(in_dtype(step)).sum().item<double>());
    EXPECT_EQ(readable(net->blocks[1]->linear->weight), !frees);
  }
  for (const auto& item : net->named_parameters()) {
    append(result, values_of(parallel.full_parameter(item.key())));
  }
  return result;
}

TEST(ResidentUnits, FreeingChangesNoBit) {
  for (const Precision& precision : {Precision::f32(), Precision::bf16_mixed()}) {
    for (const bool by_hand : {false, true}) {
      for (const bool recompute : {false, true}) {
        for (const std::int64_t unit_blocks : {1, 2}) {
          ParallelOptions options = always();
          options.precision = precision;
          options.recompute = recompute;
          options.unit_blocks = unit_blocks;
          const auto freed =
              run(2, [&](Group& group) { return train_freeing(group, options, by_hand); });
          options.reshard = Reshard::never;
          EXPECT_EQ(run(2, [&](Group& group) { return train_freeing(group, options, by_hand); }),
                    freed)
              << by_hand << recompute << unit_blocks;
        }
      }
    }
  }
}

TEST(ResidentUnits, ReadingElsewhereNamesTheUnit) {
  Group alone = Group::alone();
  ReadNet net;
  Parallel parallel(net, alone, always());
  const std::string error = what_of([&] { net->blocks[1]->linear->weight.sum(); });
  EXPECT_NE(error.find("unit 'block1' is not gathered"), std::string::npos) << error;
  EXPECT_NE(error.find("with_full_parameters()"), std::string::npos) << error;
  // A forward past Unit.
  EXPECT_NE(what_of([&] { net->blocks[2]->ReadBlockImpl::forward(input(0)); }).find("'block2'"),
            std::string::npos);
  net->first->weight.sum();  // outside of all
  {
    const Gathered gathered(*net);
    EXPECT_TRUE(readable(net->blocks[2]->linear->weight));
    net(input(0));
    EXPECT_TRUE(readable(net->blocks[2]->linear->weight));
  }
  EXPECT_FALSE(readable(net->blocks[2]->linear->weight));
  EXPECT_EQ(parallel.full_parameter("block1.unused").sum().item<double>(), 3);
  parallel.with_full_parameters([&] { EXPECT_TRUE(readable(net->blocks[1]->linear->weight)); });
  parallel.set_parameter("block1.unused", torch::zeros({3}));
  EXPECT_EQ(parallel.full_parameter("block1.unused").sum().item<double>(), 0);
}

// Readable in its own forward and backward, and nowhere else.
TEST(ResidentUnits, AUnitIsReadableInItsOwnPassesOnly) {
  Group alone = Group::alone();
  ReadNet net;
  Parallel parallel(net, alone, always());
  std::vector<bool> seen;
  const auto look = [&] {
    for (const auto& block : net->blocks) {
      seen.push_back(readable(block->linear->weight));
    }
  };
  torch::Tensor x = net->first(input(0));
  x = net->blocks[0](x);
  look();
  x.register_hook([&](const torch::Tensor&) { look(); });  // behind block0's
  x = net->blocks[1](x);
  x = net->blocks[2](x);
  x.sum().backward();
  look();
  EXPECT_EQ(seen, (std::vector<bool>{false, false, false, true, true, false, false, false, false}));
}

TEST(ResidentUnits, AnExceptionInForwardLeavesNothingGathered) {
  Group alone = Group::alone();
  ReadNet net;
  Parallel parallel(net, alone, always());
  SGD optimizer = parallel.sgd({.lr = 0.1});
  EXPECT_NE(what_of([&] { net(torch::ones({1, 8})); }).find("one sample"), std::string::npos);
  EXPECT_FALSE(readable(net->blocks[0]->linear->weight));
  net(input(0)).sum().backward();
  optimizer.step();
}

TEST(ResidentUnits, ABackwardThatFailedIsFreedByTheNextForward) {
  Group alone = Group::alone();
  ReadNet net;
  Parallel parallel(net, alone, always());
  torch::Tensor x = net->blocks[0](net->first(input(0)));
  x.register_hook([](const torch::Tensor&) { throw std::runtime_error("a hook of the program"); });
  x = net->blocks[1](x);
  EXPECT_NE(what_of([&] { x.sum().backward(); }).find("a hook of the program"), std::string::npos);
  EXPECT_TRUE(readable(net->blocks[1]->linear->weight));
  net->blocks[2](input(0));
  EXPECT_FALSE(readable(net->blocks[1]->linear->weight));
}

// In a loop of one's own that is noticed in the middle of a backward.
TEST(ResidentUnits, ParametersUnfrozenLaterAreFreedToo) {
  for (const bool by_hand : {true, false}) {
    Group alone = Group::alone();
    ReadNet net;
    torch::Tensor late = net->blocks[1]->linear->weight;
    late.set_requires_grad(false);
    Parallel parallel(net, alone, always());
    SGD optimizer = parallel.sgd({.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      late.set_requires_grad(step > 0);
      if (by_hand) {
        net(input(step)).sum().backward();
      } else {
        for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps()) {
          net(input(step)).sum().backward();
        }
      }
      optimizer.step();
    }
    EXPECT_FALSE(readable(late)) << by_hand;
  }
}

// Its weight is a product, whose backward reads both factors after that of the input is done.
struct LowRankImpl : torch::nn::Module {
  LowRankImpl() {
    down = register_parameter("down", torch::ones({8, 2}));
    up = register_parameter("up", torch::ones({2, 8}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return x.matmul(down.matmul(up)); }
  torch::Tensor down;
  torch::Tensor up;
};
TORCH_MODULE(LowRank);

// A unit that takes a parameter as an argument, over and over.
TEST(ResidentUnits, ALeafAmongTheArgumentsFreesNothingEarly) {
  Group alone = Group::alone();
  Unit<LowRank> unit;
  torch::nn::Sequential model(unit);
  Parallel parallel(model, alone, always());
  SGD optimizer = parallel.sgd({.lr = 0.1});
  torch::Tensor prompt = torch::ones({6, 8}).requires_grad_();
  for (int pass = 0; pass < 3; ++pass) {
    optimizer.zero_grad();
    unit(prompt).sum().backward();
    EXPECT_FALSE(readable(unit->down));
  }
  EXPECT_TRUE(prompt.grad().defined());
}

// Which blocks it runs, and in what order, is told from outside.
struct ChoosingNetImpl : test::UnitBlocks<ReadBlock> {
  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = first(input);
    for (const std::size_t block : chosen) {
      x = blocks[block](x);
    }
    return x;
  }
  std::vector<std::size_t> chosen;
};
TORCH_MODULE(ChoosingNet);

// Steps of a plain loop, or of two micro-batches, in which the ranks choose by step and rank.
// Returns the steps done.
double choose(Group& group, bool by_hand,
              const std::function<std::vector<std::size_t>(int, int)>& chosen,
              const ParallelOptions& options = always()) {
  torch::manual_seed(5);
  ChoosingNet net;
  Parallel parallel(net, group, options);
  SGD optimizer = parallel.sgd({.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    net->chosen = chosen(step, group.rank());
    if (by_hand) {
      net(input(step)).sum().backward();
    } else {
      for (const MicroStep& micro : parallel.micro_steps(2)) {
        net(input(micro.leaf)).sum().backward();
      }
    }
    optimizer.step();
  }
  return static_cast<double>(parallel.steps());
}

std::string error_of_choosing(bool by_hand,
                              const std::function<std::vector<std::size_t>(int, int)>& chosen) {
  std::string error;
  for (const auto& result : test::run_ranks(3, [&](Group& group) -> Values {
         at::set_num_threads(1);  // the parent's threads are not in this process
         return {choose(group, by_hand, chosen)};
       })) {
    EXPECT_TRUE(error.empty() || error == result.error) << result.error;
    error = result.error;
  }
  return error;
}

TEST(ResidentUnits, ARankThatLeavesTheOrderIsNamed) {
  for (const bool by_hand : {true, false}) {
    const std::string swapped = error_of_choosing(by_hand, [](int step, int rank) {
      return step == 2 && rank == 1 ? std::vector<std::size_t>{0, 2, 1}
                                    : std::vector<std::size_t>{0, 1, 2};
    });
    EXPECT_NE(swapped.find("in micro-batch 0 of the step, pass 1 is forward of 'block1' on rank "
                           "0, as in the step before, but forward of 'block2' on rank 1"),
              std::string::npos)
        << swapped;
    const std::string skipped = error_of_choosing(by_hand, [](int, int rank) {
      return rank == 2 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0, 1, 2};
    });
    EXPECT_NE(skipped.find("pass 2 is forward of 'block2' on rank 0, but backward of 'block1' on "
                           "rank 2"),
              std::string::npos)
        << skipped;
  }
}

// As a module that skips blocks at random does, which draws alike on all ranks.
TEST(ResidentUnits, AllRanksMayChangeTheOrderTogether) {
  for (const bool by_hand : {true, false}) {
    EXPECT_EQ(error_of_choosing(by_hand,
                                [](int step, int) {
                                  return step % 2 == 0 ? std::vector<std::size_t>{0, 1, 2}
                                                       : std::vector<std::size_t>{2, 0};
                                }),
              "");
  }
}

// Nothing is gathered there, so nothing hangs on the order.
TEST(ResidentUnits, OrdersAreFreeWhereNothingIsFreed) {
  ParallelOptions never = always();
  never.reshard = Reshard::never;
  const auto done = run(2, [&](Group& group) -> Values {
    return {choose(
        group, true, [](int, int rank) { return std::vector<std::size_t>{rank == 0 ? 0u : 1u}; },
        never)};
  });
  EXPECT_EQ(done, std::vector<Values>(2, Values{4}));
}

// Ranks that have run out of data take part without a pass.
TEST(ResidentUnits, ARankWithoutDataHasNoOrder) {
  run(3, [](Group& group) -> Values {
    ReadNet net;
    Parallel parallel(net, group, always());
    SGD optimizer = parallel.sgd({.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      // Rank 2 has data for all micro-batches, rank 1 for the first of each step, rank 0 for none.
      const std::vector<std::int64_t> weights{group.rank() > 0 ? 6 : 0, group.rank() > 1 ? 6 : 0};
      for (const MicroStep& micro : parallel.weighted_micro_steps(weights)) {
        if (micro.weight > 0) {
          net(input(micro.leaf)).sum().backward();
        }
      }
      optimizer.step();
    }
    return {};
  });
}

TEST(ResidentUnits, AreOfZero3) {
  Group alone = Group::alone();
  ParallelOptions options = always();
  options.stage = Stage::ddp;
  EXPECT_NE(what_of([&] { Parallel(ReadNet(), alone, options); }).find("is for stage zero3"),
            std::string::npos);
}

// As of a frozen module that two models use.
TEST(ResidentUnits, AFrozenUnitIsLeftAlone) {
  Group alone = Group::alone();
  ReadNet net;
  for (torch::Tensor& parameter : net->blocks[1]->parameters()) {
    parameter.set_requires_grad(false);
  }
  Parallel parallel(net, alone, always());
  EXPECT_EQ(net->blocks[1]->observer(), nullptr);
  EXPECT_TRUE(readable(net->blocks[1]->linear->weight));
  net(input(0)).sum().backward();
  EXPECT_FALSE(readable(net->blocks[0]->linear->weight));
}

// The module stays usable, and so do graphs.
TEST(ResidentUnits, AllIsReadableWhenTheParallelIsGone) {
  Group alone = Group::alone();
  ReadNet net;
  torch::Tensor loss;
  {
    Parallel parallel(net, alone, always());
    loss = net(input(0)).sum();
  }
  loss.backward();
  EXPECT_TRUE(readable(net->blocks[1]->linear->weight));
  net(input(0)).sum().backward();
}

}  // namespace
}  // namespace lockstep
