#include "lockstep/unit.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>

namespace lockstep {
namespace {

using Outputs = std::vector<double>;

template <class Output>
Outputs tensors_in(Output output) {
  Outputs result;
  for_each_tensor(output, [&result](const torch::Tensor& tensor) {
    result.push_back(tensor.defined() ? tensor.item<double>() : -1);
  });
  return result;
}

torch::Tensor scalar(double value) { return torch::tensor(value); }

TEST(Outputs, TensorsOfEveryKindAreVisitedInOrder) {
  EXPECT_EQ(tensors_in(scalar(1)), Outputs{1});
  EXPECT_EQ(tensors_in(torch::Tensor()), Outputs{-1});
  EXPECT_EQ(tensors_in(std::pair(scalar(1), scalar(2))), (Outputs{1, 2}));
  EXPECT_EQ(tensors_in(std::tuple(scalar(1), std::tuple(scalar(2), scalar(3)))),
            (Outputs{1, 2, 3}));
  EXPECT_EQ(tensors_in(std::vector{scalar(1), scalar(2)}), (Outputs{1, 2}));
  EXPECT_EQ(tensors_in(std::array{scalar(1), scalar(2)}), (Outputs{1, 2}));
  EXPECT_EQ(tensors_in(std::map<std::string, torch::Tensor>{{"b", scalar(2)}, {"a", scalar(1)}}),
            (Outputs{1, 2}));
  EXPECT_EQ(tensors_in(std::unordered_map<int, torch::Tensor>{{4, scalar(1)}}), Outputs{1});
  EXPECT_EQ(tensors_in(std::optional(scalar(1))), Outputs{1});
  EXPECT_EQ(tensors_in(std::optional<torch::Tensor>()), Outputs{});
  EXPECT_EQ(tensors_in(std::vector{std::optional(std::pair(scalar(1), scalar(2)))}),
            (Outputs{1, 2}));
}

TEST(Outputs, VisitorMayReplaceTensors) {
  std::pair<torch::Tensor, std::vector<torch::Tensor>> output(scalar(1), {scalar(2)});
  for_each_tensor(output, [](torch::Tensor& tensor) { tensor = tensor * 10; });
  EXPECT_EQ(tensors_in(output), (Outputs{10, 20}));
}

struct Unknown {
  torch::Tensor value;
};
struct Known {
  torch::Tensor value;
};

}  // namespace

template <>
struct TensorsIn<Known> {
  static constexpr bool known = true;
  template <class Output, class Visit>
  static void each(Output& output, const Visit& visit) {
    visit(output.value);
  }
};

namespace {

static_assert(!TensorOutput<Unknown>);
static_assert(!TensorOutput<std::vector<Unknown>>);
static_assert(!TensorOutput<void>);
static_assert(!TensorOutput<double>);
static_assert(TensorOutput<const Known&>);

TEST(Outputs, OtherTypesAreKnownOnceSpecialised) {
  EXPECT_EQ(tensors_in(std::vector{Known{scalar(3)}}), Outputs{3});
}

// A default argument, a tuple as output, state that clone() copies.
struct ShiftedImpl : torch::nn::Cloneable<ShiftedImpl> {
  ShiftedImpl() { reset(); }
  void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x, double shift = 1.0) {
    return {linear(x), x + shift};
  }
  torch::nn::Linear linear{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(1.0)})
};
TORCH_MODULE(Shifted);

struct OverloadedImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x; }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& y) { return x + y; }
};
TORCH_MODULE(Overloaded);

TEST(Unit, CountsForwardsHoweverTheyAreCalled) {
  Unit<Shifted> unit;
  const auto x = torch::ones({1, 2});
  EXPECT_EQ(std::get<1>(unit(x)).sum().item<double>(), 4);
  EXPECT_EQ(std::get<1>(unit(x, 2.0)).sum().item<double>(), 6);
  EXPECT_EQ(std::get<1>(unit->forward(x, 3.0)).sum().item<double>(), 8);
  EXPECT_EQ(unit->forwards(), 3);
}

TEST(Unit, HasTheNamesOfItsModuleAndIsOne) {
  Unit<Shifted> unit;
  EXPECT_EQ(unit->named_parameters().keys(), Shifted()->named_parameters().keys());
  EXPECT_NE(std::dynamic_pointer_cast<ShiftedImpl>(unit.ptr()), nullptr);
}

TEST(Unit, OverloadsAreChosenByTheCall) {
  Unit<Overloaded> unit;
  EXPECT_EQ(unit(scalar(1)).item<double>(), 1);
  EXPECT_EQ(unit(scalar(1), scalar(2)).item<double>(), 3);
  EXPECT_EQ(unit->forward(scalar(1), scalar(2)).item<double>(), 3);
  EXPECT_EQ(unit->forwards(), 3);
}

TEST(Unit, WorksInAnyModuleWithDefaultArguments) {
  Unit<Shifted> unit;
  torch::nn::AnyModule any(unit);
  const auto output = any.forward<std::tuple<torch::Tensor, torch::Tensor>>(torch::ones({1, 2}));
  EXPECT_EQ(std::get<1>(output).sum().item<double>(), 4);
  EXPECT_EQ(unit->forwards(), 1);
}

TEST(Unit, LstmIsAUnitWithANestedOutput) {
  Unit<torch::nn::LSTM> unit(torch::nn::LSTMOptions(2, 3));
  auto output = unit(torch::ones({4, 1, 2}));
  int tensors = 0;
  for_each_tensor(output, [&tensors](const torch::Tensor&) { ++tensors; });
  EXPECT_EQ(tensors, 3);
}

TEST(Unit, CloneIsAUnitWithItsOwnTensors) {
  Unit<Shifted> unit;
  unit(torch::ones({1, 2}));
  const auto clone = std::dynamic_pointer_cast<UnitImpl<ShiftedImpl>>(unit->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_EQ(clone->forwards(), 0);
  EXPECT_TRUE(torch::equal(clone->linear->weight, unit->linear->weight));
  EXPECT_FALSE(clone->linear->weight.is_same(unit->linear->weight));
  EXPECT_TRUE(clone->linear->weight.is_same(clone->named_parameters()["linear.weight"]));
  {
    const torch::NoGradGuard no_grad;
    unit->linear->weight.add_(1);
  }
  EXPECT_FALSE(torch::equal(clone->linear->weight, unit->linear->weight));
}

TEST(Unit, CloneOfAModuleThatCannotBeClonedSaysSo) {
  Unit<Overloaded> unit;
  EXPECT_THROW(unit->clone(), c10::Error);
}

}  // namespace
}  // namespace lockstep
