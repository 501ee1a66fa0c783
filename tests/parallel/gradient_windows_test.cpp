#include "parallel/gradient_windows.h"

#include "base/gradient_window.h"
#include "comm/windowed.h"
#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <optional>

namespace lockstep::parallel {
namespace {

NamedParameter zeros(const char* name, std::int64_t elements, torch::Dtype dtype) {
  return {name, torch::zeros({elements}), dtype};
}

// Members of 3, 70, 0 and 64 elements, at 0, 64, 192 and 192 of 256.
class GradientWindowsTest : public testing::Test {
 protected:
  GradientWindowsTest()
      : flat_(*device_,
              {zeros("a", 3, torch::kBFloat16), zeros("b", 70, torch::kBFloat16),
               zeros("c", 0, torch::kBFloat16), zeros("d", 64, torch::kBFloat16)},
              {}) {}

  std::unique_ptr<Device> device_ = make_cpu_device();
  Group group_ = Group::alone();
  FlatParameter flat_;
};

TEST_F(GradientWindowsTest, AreAsLargeAsTheLargestFlatParameterAndNeverLargerThanAFewMB) {
  FlatParameter wide(*device_, {zeros("w", 300, torch::kFloat32)}, {});
  EXPECT_EQ(GradientWindows(*device_, group_, {&flat_, &wide}).bytes(), 2 * 320 * 4);
  FlatParameter large(*device_, {zeros("l", 3'000'000, torch::kBFloat16)}, {});
  const GradientWindows windows(*device_, group_, {&large, &flat_});
  EXPECT_EQ(windows.bytes(), 2 * kLargestGradientWindow);
  EXPECT_EQ(windows.parts(), 2u);
}

TEST_F(GradientWindowsTest, LayAnyRangeOfALeafAndZerosElsewhere) {
  const GradientWindows windows(*device_, group_, {&flat_});
  ASSERT_EQ(flat_.layout().size(), 256);
  const auto numbered = [](std::int64_t first, torch::IntArrayRef shape) {
    return (torch::arange(c10::multiply_integers(shape)) + first).to(torch::kBFloat16).view(shape);
  };
  const LeafOfPart leaf{.part = 0, .members = {numbered(1, {3}), {}, {}, numbered(11, {8, 8})}};
  std::vector<float> expected(256);
  for (std::size_t i = 0; i < 3; ++i) {
    expected[i] = static_cast<float>(1 + i);
  }
  for (std::size_t i = 0; i < 64; ++i) {
    expected[192 + i] = static_cast<float>(11 + i);
  }
  for (const Range range : {Range{0, 256}, {0, 2}, {2, 64}, {1, 193}, {64, 192}, {200, 256}}) {
    const torch::Tensor to = torch::full({range.size() + 1}, 77, torch::kBFloat16);
    windows.lay(leaf, range, to.mutable_data_ptr());
    const torch::Tensor laid = to.to(torch::kFloat32);
    const auto* values = laid.const_data_ptr<float>();
    EXPECT_EQ(std::vector<float>(values, values + range.size()),
              std::vector<float>(expected.begin() + range.begin, expected.begin() + range.end));
    EXPECT_EQ(values[range.size()], 77) << "wrote behind " << range.end;
  }
}

}  // namespace
}  // namespace lockstep::parallel
