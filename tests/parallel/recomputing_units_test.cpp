#include "parallel/recomputing_units.h"

#include "lockstep/error.h"
#include "lockstep/unit.h"
#include "parallel/modules.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

struct InnerImpl : torch::nn::Module {
  InnerImpl() { linear = register_module("linear", Unit<torch::nn::Linear>(3, 3)); }
  torch::Tensor forward(const torch::Tensor& x) { return linear(x); }
  Unit<torch::nn::Linear> linear{nullptr};
};
TORCH_MODULE(Inner);

TEST(RecomputingUnits, SetsEveryUnitAtAnyDepthWhileItLives) {
  torch::nn::Sequential module(Unit<torch::nn::Linear>(3, 3), Inner(), torch::nn::Linear(3, 3));
  int told = 0;
  const auto backward = [&] { module->forward(torch::ones({1, 3})).sum().backward(); };
  {
    const RecomputingUnits recomputing(*module, [&] { ++told; });
    backward();
    EXPECT_EQ(told, 2);
  }
  backward();
  EXPECT_EQ(told, 2);
}

TEST(RecomputingUnits, AUnitOfAnotherIsNamed) {
  torch::nn::Sequential module(torch::nn::Linear(3, 3), Inner());
  const RecomputingUnits recomputing(*module, [] {});
  EXPECT_NE(test::error_of([&] { RecomputingUnits(*module, [] {}); }).find("unit '1.linear'"),
            std::string::npos);
}

TEST(RecomputingUnits, NeedsAUnit) {
  torch::nn::Linear module(3, 3);
  EXPECT_THROW(RecomputingUnits(*module, [] {}), UsageError);
}

}  // namespace
}  // namespace lockstep::parallel
