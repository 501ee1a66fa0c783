#include "parallel/gradient_memory.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

using test::values_of;

class GradientMemoryTest : public testing::Test {
 protected:
  GradientMemoryTest()
      : narrow_(*device_,
                {{"a", torch::zeros({70}), torch::kBFloat16},
                 {"b", torch::zeros({2, 3}), torch::kBFloat16}},
                {}),
        wide_(*device_, {{"c", torch::zeros({5}), torch::kFloat32}}, {}) {}

  std::unique_ptr<Device> device_ = make_cpu_device();
  Group group_ = Group::alone();
  FlatParameter narrow_;
  FlatParameter wide_;
  std::vector<FlatParameter*> parts_{&narrow_, &wide_};
};

TEST_F(GradientMemoryTest, LeavesTravelInTheirOwnDtype) {
  const GradientMemory gradients(group_, parts_, GradientWidth::leaf);
  EXPECT_EQ(gradients.span(0).dtype, Dtype::bf16);
  EXPECT_EQ(gradients.span(1).dtype, Dtype::f32);
  EXPECT_EQ(gradients.bytes(), 192 * 2 + 64 * 4);
}

TEST_F(GradientMemoryTest, PartialSumsTravelInFp32) {
  const GradientMemory gradients(group_, parts_, GradientWidth::accumulating);
  EXPECT_EQ(gradients.span(0).dtype, Dtype::f32);
  EXPECT_EQ(gradients.view(0, 1).scalar_type(), torch::kFloat32);
  EXPECT_EQ(gradients.bytes(), (192 + 64) * 4);
}

TEST_F(GradientMemoryTest, ViewsHaveTheMembersShapeAndPlace) {
  const GradientMemory gradients(group_, parts_, GradientWidth::leaf);
  EXPECT_EQ(gradients.view(0, 1).sizes(), torch::IntArrayRef({2, 3}));
  EXPECT_EQ(gradients.view(0, 1).const_data_ptr(), gradients.values(0, 1).data);
  EXPECT_EQ(static_cast<std::byte*>(gradients.values(0, 1).data),
            static_cast<std::byte*>(gradients.span(0).data()) + 128 * 2);
  gradients.view(1, 0).fill_(4);
  EXPECT_EQ(values_of(gradients.view(1, 0)), std::vector<double>(5, 4.0));
  EXPECT_EQ(values_of(gradients.view(0, 0)), std::vector<double>(70, 0.0));
}

TEST_F(GradientMemoryTest, WritingThroughAViewShowsInThePartsVersion) {
  const GradientMemory gradients(group_, parts_, GradientWidth::leaf);
  const std::uint32_t before = gradients.version(0);
  const std::uint32_t other = gradients.version(1);
  gradients.view(0, 1).mul_(2);
  EXPECT_GT(gradients.version(0), before);
  EXPECT_EQ(gradients.version(1), other);
}

}  // namespace
}  // namespace lockstep::parallel
