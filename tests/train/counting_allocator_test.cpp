#include "train/counting_allocator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::train {
namespace {

constexpr std::int64_t kMega = 1'000'000;

TEST(CountingAllocator, CountsTensorsThatAreAlive) {
  count_allocations();
  count_allocations();
  const std::int64_t before = live_tensor_bytes();
  {
    const torch::Tensor one = torch::empty({kMega}, torch::kFloat32);
    const std::int64_t held = live_tensor_bytes() - before;
    EXPECT_GE(held, 4 * kMega);
    EXPECT_LE(held, 4 * kMega + 8192);
    const torch::Tensor view = one.view({1000, 1000});
    EXPECT_EQ(live_tensor_bytes() - before, held);
    const torch::Tensor copy = view.clone();
    EXPECT_NEAR(static_cast<double>(live_tensor_bytes() - before), 2.0 * held, 8192);
  }
  EXPECT_EQ(live_tensor_bytes(), before);
}

TEST(CountingAllocator, TellsTheMostSinceItWasAsked) {
  count_allocations();
  const torch::Tensor kept = torch::empty({kMega}, torch::kFloat32);
  take_peak_tensor_bytes();
  const std::int64_t before = live_tensor_bytes();
  for (int i = 0; i < 3; ++i) {
    const torch::Tensor passing = torch::empty({kMega}, torch::kFloat32);
  }
  const std::int64_t peak = take_peak_tensor_bytes();
  EXPECT_GE(peak - before, 4 * kMega);
  EXPECT_LE(peak - before, 4 * kMega + 8192) << "one at a time";
  EXPECT_EQ(take_peak_tensor_bytes(), before);
}

TEST(CountingAllocator, FollowsStorageThatGrows) {
  count_allocations();
  const std::int64_t before = live_tensor_bytes();
  {
    torch::Tensor tensor = torch::ones({10});
    tensor.resize_({kMega});
    EXPECT_EQ(tensor[3].item<float>(), 1.0f);
    EXPECT_GE(live_tensor_bytes() - before, 4 * kMega);
    EXPECT_LE(live_tensor_bytes() - before, 4 * kMega + 8192);
  }
  EXPECT_EQ(live_tensor_bytes(), before);
}

}  // namespace
}  // namespace lockstep::train
