// Modules by how they are put together: Sequential, AnyModule, clone(), Units, several outputs.
#include "lockstep/unit.h"
#include "parallel/module_kinds.h"

namespace lockstep {
namespace {

using test::input_of;
using test::Kind;
using test::NamedKind;

torch::nn::Sequential sequential() {
  return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::ReLU(),
                               Unit<torch::nn::Linear>(8, 8), torch::nn::Tanh(),
                               torch::nn::Linear(8, 2));
}

Kind sequential_kind(torch::nn::Sequential model) {
  return {model.ptr(), [model](std::int64_t sample) mutable {
            return (model->forward(input_of(sample, {3, 6})) - 1).pow(2).mean();
          }};
}

Kind cloned_kind() {
  const torch::nn::Sequential original = sequential();
  return sequential_kind(torch::nn::Sequential(
      std::dynamic_pointer_cast<torch::nn::SequentialImpl>(original->clone())));
}

// A list of modules whose types only run time knows.
struct ErasedImpl : torch::nn::Module {
  ErasedImpl() {
    add(torch::nn::AnyModule(torch::nn::Linear(6, 8)));
    add(torch::nn::AnyModule(torch::nn::GELU()));
    add(torch::nn::AnyModule(Unit<torch::nn::Linear>(8, 2)));
  }
  void add(torch::nn::AnyModule module) {
    register_module("part" + std::to_string(parts.size()), module.ptr());
    parts.push_back(std::move(module));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (torch::nn::AnyModule& part : parts) {
      x = part.forward(x);
    }
    return x;
  }
  std::vector<torch::nn::AnyModule> parts;
};

Kind any_module_kind() {
  const auto model = std::make_shared<ErasedImpl>();
  return {model, [model](std::int64_t sample) {
            return model->forward(input_of(sample, {3, 6})).pow(2).mean();
          }};
}

// Two heads on one body, of which a loss may use either.
struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() {
    body = register_module("body", torch::nn::Linear(6, 8));
    left = register_module("left", torch::nn::Linear(8, 1));
    right = register_module("right", torch::nn::Linear(8, 3));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    const auto hidden = torch::tanh(body(x));
    return {left(hidden), right(hidden)};
  }
  torch::nn::Linear body{nullptr}, left{nullptr}, right{nullptr};
};
TORCH_MODULE(TwoHeads);

// The right head is used by every other leaf only.
Kind two_heads_kind() {
  Unit<TwoHeads> model;
  return {model.ptr(), [model](std::int64_t sample) mutable {
            const auto [left, right] = model(input_of(sample, {3, 6}));
            torch::Tensor loss = left.pow(2).mean();
            return sample % 2 == 0 ? loss : loss + right.pow(2).mean();
          }};
}

const NamedKind kKinds[] = {
    {"Sequential", [] { return sequential_kind(sequential()); }},
    {"clone", cloned_kind},
    {"AnyModule", any_module_kind},
    {"two heads", two_heads_kind},
};

TEST(ContainerKinds, SameBitsOnAnyRanksAndNearPlainTorch) {
  for (const NamedKind& kind : kKinds) {
    test::expect_equal_on_any_ranks_and_near_plain_torch(kind);
  }
}

TEST(ContainerKinds, CloneOfAWrappedModuleIsOnItsOwn) {
  Group group = Group::alone();
  torch::nn::Sequential model = sequential();
  Parallel parallel(model, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd({.lr = 0.5});
  const auto clone = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(model->clone());
  const auto before = test::state_of(*clone);
  model->forward(input_of(1, {3, 6})).pow(2).mean().backward();
  optimizer.step();
  EXPECT_EQ(test::state_of(*clone), before);
  EXPECT_NE(test::state_of(*model), before);
  Parallel other(clone, group, {.stage = Stage::single});
  clone->forward(input_of(1, {3, 6})).pow(2).mean().backward();
  EXPECT_TRUE(clone->parameters()[0].grad().defined());
  EXPECT_FALSE(model->parameters()[0].grad().defined());
}

}  // namespace
}  // namespace lockstep
