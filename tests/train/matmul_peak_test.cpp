#include "train/matmul_peak.h"

#include "support/ranks.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::train {
namespace {

TEST(MatmulPeak, IsTheSameOnAllRanksAndAddsThem) {
  const auto results = test::run_ranks(2, [](Group& group) {
    at::set_num_threads(1);
    Group alone = Group::alone();
    std::vector<double> values;
    for (const bool bf16 : {false, true}) {
      values.push_back(matmul_peak(group, {.bf16 = bf16, .windows = 2, .window_ms = 10}));
      values.push_back(matmul_peak(alone, {.bf16 = bf16, .windows = 2, .window_ms = 10}));
    }
    return values;
  });
  for (const test::RankResult& rank : results) {
    ASSERT_EQ(rank.error, "");
    for (const std::size_t of_type : {0u, 2u}) {
      EXPECT_EQ(rank.values[of_type], results[0].values[of_type]);
      EXPECT_GT(rank.values[of_type], 1e8);
      EXPECT_LT(rank.values[of_type], 1e15);
      // Two ranks reach what one does to twice that, however many cores they share.
      EXPECT_LT(rank.values[of_type], 8 * rank.values[of_type + 1]);
    }
  }
}

}  // namespace
}  // namespace lockstep::train
