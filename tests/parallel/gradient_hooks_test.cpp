#include "parallel/gradient_hooks.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep::parallel {
namespace {

torch::Tensor leaf() { return torch::ones({2}, torch::requires_grad()); }

TEST(GradientHooks, CallWithTheParametersNumberOncePerBackward) {
  const std::vector<at::Tensor> parameters{leaf(), leaf(), leaf()};
  std::vector<std::size_t> fired;
  const GradientHooks hooks(parameters, [&fired](std::size_t i) { fired.push_back(i); });
  (parameters[2] * 2 + parameters[2] + parameters[0]).sum().backward();
  std::ranges::sort(fired);
  EXPECT_EQ(fired, (std::vector<std::size_t>{0, 2}));
}

TEST(GradientHooks, GoWithTheirOwner) {
  const torch::Tensor parameter = leaf();
  int fired = 0;
  {
    const GradientHooks hooks({parameter}, [&fired](std::size_t) { ++fired; });
    parameter.sum().backward();
  }
  parameter.sum().backward();
  EXPECT_EQ(fired, 1);
}

TEST(GradientHooks, SecondOwnerIsRefusedAndTheFirstKeepsWorking) {
  const torch::Tensor parameter = leaf();
  int fired = 0;
  const GradientHooks first({parameter}, [&fired](std::size_t) { ++fired; });
  EXPECT_THROW(GradientHooks({parameter}, [](std::size_t) {}), UsageError);
  parameter.sum().backward();
  EXPECT_EQ(fired, 1);
}

TEST(GradientHooks, ExceptionsReachBackwardWithTheirType) {
  const torch::Tensor parameter = leaf();
  const GradientHooks hooks({parameter}, [](std::size_t) { throw UsageError("from the hook"); });
  EXPECT_THROW(parameter.sum().backward(), UsageError);
}

TEST(GradientHooks, NoGraphIsRecordedUnderCreateGraph) {
  torch::Tensor parameter = leaf();
  bool recording = true;
  const GradientHooks hooks({parameter},
                            [&recording](std::size_t) { recording = at::GradMode::is_enabled(); });
  (parameter * parameter).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  EXPECT_FALSE(recording);
  parameter.mutable_grad() = torch::Tensor();  // which holds the graph, which holds the parameter
}

TEST(GradientHooks, CallAfterBackwardRunsOnceAtItsEnd) {
  const torch::Tensor parameter = leaf();
  std::vector<std::string> events;
  const GradientHooks hooks({parameter}, [&events](std::size_t) {
    EXPECT_GE(running_backward(), 0);
    call_after_backward([&events] { events.push_back("end"); });
    events.push_back("hook");
  });
  EXPECT_EQ(running_backward(), -1);
  parameter.sum().backward();
  EXPECT_EQ(events, (std::vector<std::string>{"hook", "end"}));
}

}  // namespace
}  // namespace lockstep::parallel
