#include "train/machine.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep::train {
namespace {

TEST(Machine, KnowsItsProcessorAndItsCommand) {
  EXPECT_FALSE(cpu_name().empty());
  EXPECT_GE(available_cores(), 1);
  EXPECT_EQ(command_line().find("lockstep"), 0u);
}

TEST(MatmulPeak, IsWhatARealProductReaches) {
  for (const bool bf16 : {false, true}) {
    const double flops = matmul_peak({.bf16 = bf16, .limit_ms = 30});
    EXPECT_GT(flops, 1e8);
    EXPECT_LT(flops, 1e14);
  }
}

}  // namespace
}  // namespace lockstep::train
