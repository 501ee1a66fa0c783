#include "parallel/device.h"
#include "parallel/flat_parameter.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

TEST(CpuDevice, MemoryIsZeroedAlignedAndLivesAsLongAsAStorage) {
  const auto device = make_cpu_device();
  torch::Tensor kept;
  {
    const torch::Tensor flat = flat_tensor(*device, 1000, Dtype::bf16);
    EXPECT_EQ(flat.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.const_data_ptr()) % 64, 0u);
    EXPECT_EQ(flat.abs().sum().item<float>(), 0.0f);
    kept = flat.narrow(0, 10, 5);
  }
  kept.fill_(3);
  EXPECT_EQ(kept.sum().item<float>(), 15.0f);
}

TEST(CpuDevice, NoMemoryIsAnErrorWithTheNumber) {
  const auto device = make_cpu_device();
  try {
    device->allocate(std::int64_t{1} << 60);
    FAIL() << "an exabyte was given";
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos)
        << error.what();
  }
}

TEST(CpuDevice, EmptyMemoryIsLegal) {
  const auto device = make_cpu_device();
  EXPECT_EQ(flat_tensor(*device, 0, Dtype::f32).numel(), 0);
}

}  // namespace
}  // namespace lockstep::parallel
