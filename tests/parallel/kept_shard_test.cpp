#include "parallel/kept_shard.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::parallel {
namespace {

std::string why(const at::Tensor& tensor) {
  try {
    tensor.sum();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "it was read";
}

class KeptShards : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, KeptShards, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(KeptShards, AreGatheredToTheSameBits) {
  const int ranks = GetParam();
  for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kBool}) {
    for (const std::int64_t count : {0, 1, 2, 6, 7, 1000, 40'000}) {
      test::on_ranks(ranks, [&](Group& group) {
        at::Tensor tensor = torch::arange(count).fmod(5).to(dtype).reshape({count, 1});
        const at::Tensor before = tensor.clone();
        const void* const storage = tensor.storage().unsafeGetStorageImpl();
        keep_only(tensor, shard_of(tensor, group.rank(), ranks), "spread");
        EXPECT_NE(tensor.storage().unsafeGetStorageImpl(), storage);
        EXPECT_EQ(tensor.sizes(), before.sizes());
        EXPECT_EQ(tensor.scalar_type(), dtype);
        ASSERT_NE(kept_shard(tensor), nullptr);
        EXPECT_LE(kept_shard(tensor)->bytes.numel() * ranks,
                  static_cast<std::int64_t>(before.nbytes()) + ranks * ranks);
        const at::Tensor all = gather_kept(tensor, group, "all");
        EXPECT_EQ(kept_shard(all), nullptr);
        EXPECT_TRUE(at::equal(all, before)) << dtype << count;
      });
    }
  }
}

TEST(KeptShard, ReadingThrowsItsText) {
  at::Tensor tensor = torch::ones({5}).requires_grad_();
  keep_only(tensor, shard_of(tensor, 1, 2), "parameter 'a' is spread");
  EXPECT_NE(why(tensor).find("parameter 'a' is spread"), std::string::npos) << why(tensor);
  explain(tensor, "unit 'b' is spread");
  EXPECT_NE(why(tensor).find("unit 'b' is spread"), std::string::npos) << why(tensor);
  EXPECT_TRUE(tensor.requires_grad());
  EXPECT_TRUE(tensor.is_leaf());
  EXPECT_THROW(tensor.detach().zero_(), c10::Error);
  EXPECT_EQ(kept_shard(tensor)->rank, 1);
  EXPECT_EQ(kept_shard(tensor)->ranks, 2);
  EXPECT_EQ(kept_shard(tensor)->bytes.numel(), 10);
}

TEST(KeptShard, OthersThatShareTheMemoryKeepIt) {
  const at::Tensor both = torch::arange(6.0);
  at::Tensor half = both.narrow(0, 3, 3);
  keep_only(half, shard_of(half, 0, 1), "spread");
  EXPECT_EQ(both.sum().item<double>(), 15);
  Group alone = Group::alone();
  EXPECT_EQ(gather_kept(half, alone, "half").sum().item<double>(), 12);
}

TEST(KeptShard, IsOfATransposedTensorsValues) {
  at::Tensor tensor = torch::arange(6.0).reshape({2, 3}).t();
  const at::Tensor before = tensor.clone();
  keep_only(tensor, shard_of(tensor, 0, 1), "spread");
  Group alone = Group::alone();
  EXPECT_TRUE(at::equal(gather_kept(tensor, alone, "all"), before));
}

TEST(KeptShard, OrdinaryTensorsHaveNone) {
  EXPECT_EQ(kept_shard(at::Tensor()), nullptr);
  EXPECT_EQ(kept_shard(torch::ones({3})), nullptr);
  EXPECT_EQ(kept_shard(torch::eye(3).to_sparse()), nullptr);
}

}  // namespace
}  // namespace lockstep::parallel
