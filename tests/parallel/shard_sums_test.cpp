#include "parallel/shard_sums.h"

#include "base/range.h"
#include "parallel/modules.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

using test::values_of;

// Rank 1's shard of 130 elements on 2 ranks: elements 128 to 256.
class ShardSumsTest : public testing::Test {
 protected:
  FlatParameter make(torch::Dtype dtype) {
    FlatParameter part(*device_, {{"p", torch::zeros({130}), dtype}}, {.ranks = 2, .shard = 1});
    part.attach_members(*device_);
    return part;
  }

  static torch::Tensor leaf(std::int64_t number) {
    auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(number + 1));
    return torch::randn({128}, generator);
  }
  static torch::Tensor tree(std::int64_t lo, std::int64_t hi) {
    const std::int64_t mid = hi - lo == 1 ? hi : lo + tree_split(hi - lo);
    return mid == hi ? leaf(lo) : tree(lo, mid) + tree(mid, hi);
  }

  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_F(ShardSumsTest, HoldsOneLeafInItsOwnDtypeAndSumsInFp32) {
  FlatParameter part = make(torch::kBFloat16);
  const std::vector<FlatParameter*> parts{&part};
  const ShardSums narrow(*device_, parts, GradientWidth::leaf);
  EXPECT_EQ(narrow.shard(0).dtype, Dtype::bf16);
  EXPECT_EQ(narrow.shard(0).count, 128);
  EXPECT_EQ(narrow.bytes(), 128 * 2);
  const ShardSums wide(*device_, parts, GradientWidth::accumulating);
  EXPECT_EQ(wide.shard(0).dtype, Dtype::f32);
  EXPECT_EQ(wide.bytes(), 128 * 4);
  EXPECT_EQ(wide.kept(0, 0).numel(), 2) << "elements 128 and 129 of the only member";
}

TEST_F(ShardSumsTest, AddsPiecesOfLeavesInEitherOrder) {
  FlatParameter part = make(torch::kFloat32);
  const std::vector<FlatParameter*> parts{&part};
  for (const LeafOrder order : {LeafOrder::running, LeafOrder::tree}) {
    ShardSums sums(*device_, parts, GradientWidth::accumulating);
    torch::Tensor running = leaf(0);
    for (std::int64_t i = 0; i < 8; ++i) {
      running = i == 0 ? running : running + leaf(i);
      const torch::Tensor values = leaf(i);
      for (const Range piece : {Range{0, 50}, Range{50, 128}}) {
        sums.add(0, 128 + piece.begin, piece.size(), values.data_ptr<float>() + piece.begin, i,
                 order);
      }
    }
    const torch::Tensor expected = order == LeafOrder::tree ? tree(0, 8) : running;
    const auto* sum = static_cast<const float*>(sums.shard(0).data);
    EXPECT_EQ(std::vector<float>(sum, sum + 128),
              std::vector<float>(expected.data_ptr<float>(), expected.data_ptr<float>() + 128));
    EXPECT_EQ(sums.bytes(), 128 * 4 * (order == LeafOrder::tree ? 3 : 1));
  }
}

TEST_F(ShardSumsTest, ShowsWhatIsWrittenToAView) {
  FlatParameter part = make(torch::kFloat32);
  const std::vector<FlatParameter*> parts{&part};
  const ShardSums sums(*device_, parts, GradientWidth::leaf);
  const std::uint32_t before = sums.version(0);
  sums.kept(0, 0).fill_(2);
  EXPECT_GT(sums.version(0), before);
  EXPECT_EQ(static_cast<const float*>(sums.at(0, 129).data)[0], 2.0f);
}

}  // namespace
}  // namespace lockstep::parallel
