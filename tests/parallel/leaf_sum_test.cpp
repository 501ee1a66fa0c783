#include "parallel/leaf_sum.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep::parallel {
namespace {

using test::values_of;

// Leaves whose sum hangs on the order of addition.
std::vector<torch::Tensor> leaves(std::int64_t k, torch::Dtype dtype) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(k));
  std::vector<torch::Tensor> result;
  for (std::int64_t leaf = 0; leaf < k; ++leaf) {
    result.push_back((torch::randn({3, 5}, generator) * std::pow(100.0, leaf % 5)).to(dtype));
  }
  return result;
}

torch::Tensor running_sum(const std::vector<torch::Tensor>& values) {
  torch::Tensor sum = values[0].to(torch::kFloat32);
  for (std::size_t i = 1; i < values.size(); ++i) {
    sum = sum + values[i].to(torch::kFloat32);
  }
  return sum;
}

torch::Tensor tree_sum(const std::vector<torch::Tensor>& values, std::int64_t lo, std::int64_t hi) {
  if (hi - lo == 1) {
    return values[static_cast<std::size_t>(lo)].to(torch::kFloat32);
  }
  const std::int64_t mid = lo + tree_split(hi - lo);
  return tree_sum(values, lo, mid) + tree_sum(values, mid, hi);
}

class LeafSumTest : public testing::TestWithParam<torch::Dtype> {
 protected:
  LeafSumTest() {
    std::vector<NamedParameter> members;
    for (const char* name : {"p0", "p1"}) {
      members.push_back({name, torch::zeros({3, 5}), GetParam()});
    }
    part_ = std::make_unique<FlatParameter>(*device_, std::move(members), Spread{});
    part_->attach_members(*device_);
    parts_.push_back(part_.get());
  }

  torch::Tensor sum_of(const std::vector<torch::Tensor>& values, LeafOrder order) {
    GradientMemory gradients(group_, parts_, GradientWidth::accumulating);
    LeafSum sum(*device_, parts_, gradients);
    sum.begin(order);
    for (std::size_t leaf = 0; leaf < values.size(); ++leaf) {
      sum.put(0, 1, static_cast<std::int64_t>(leaf), leaf == 0, values[leaf]);
    }
    partial_bytes_ = sum.bytes();
    EXPECT_EQ(values_of(gradients.view(0, 0)), std::vector<double>(15, 0.0));
    return gradients.view(0, 1).clone();
  }

  std::unique_ptr<Device> device_ = make_cpu_device();
  Group group_ = Group::alone();
  std::unique_ptr<FlatParameter> part_;
  std::vector<FlatParameter*> parts_;
  std::int64_t partial_bytes_ = -1;
};

TEST_P(LeafSumTest, RunningOrderAddsOneAfterTheOther) {
  for (std::int64_t k = 1; k <= 9; ++k) {
    const auto values = leaves(k, GetParam());
    EXPECT_EQ(values_of(sum_of(values, LeafOrder::running)), values_of(running_sum(values))) << k;
    EXPECT_EQ(partial_bytes_, 0);
  }
}

TEST_P(LeafSumTest, TreeOrderAddsAsTheSummationTree) {
  for (std::int64_t k = 2, levels = 1; k <= 32; k *= 2, ++levels) {
    const auto values = leaves(k, GetParam());
    EXPECT_EQ(values_of(sum_of(values, LeafOrder::tree)), values_of(tree_sum(values, 0, k))) << k;
    // log2 k partial sums in all, one of which is the gradient memory.
    EXPECT_EQ(partial_bytes_, (levels - 1) * part_->layout().size() * 4) << k;
  }
}

TEST_P(LeafSumTest, OrdersDifferWhereTheyShould) {
  const auto values = leaves(8, GetParam());
  EXPECT_NE(values_of(sum_of(values, LeafOrder::tree)),
            values_of(sum_of(values, LeafOrder::running)));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, LeafSumTest, testing::Values(torch::kFloat32, torch::kBFloat16));

TEST(LeafSum, SecondBackwardOfALeafAddsLikeLibTorch) {
  const auto device = make_cpu_device();
  Group group = Group::alone();
  FlatParameter part(*device, {{"p", torch::zeros({4}), torch::kBFloat16}}, Spread{});
  part.attach_members(*device);
  const std::vector<FlatParameter*> parts{&part};
  GradientMemory gradients(group, parts, GradientWidth::leaf);
  LeafSum sum(*device, parts, gradients);
  const auto first = torch::tensor({256.0f, 1.0f, 3.0f, -2.5f}).to(torch::kBFloat16);
  const auto second = torch::tensor({0.75f, 1.0f, 1e-3f, 2.5f}).to(torch::kBFloat16);
  sum.put(0, 0, 0, true, first);
  sum.put(0, 0, 0, false, second);
  EXPECT_EQ(values_of(gradients.view(0, 0)), values_of(first + second));
}

}  // namespace
}  // namespace lockstep::parallel
