#include "lockstep/data.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::RankResult;
using test::run_ranks;

using Values = std::vector<double>;

TEST(Joined, EndsOnAllRanksWithTheLongest) {
  // Rank r has r·2 batches: none on rank 0.
  const auto results = run_ranks(3, [](Group& group) {
    const std::vector<int> batches(static_cast<std::size_t>(group.rank() * 2), group.rank());
    Values seen;
    for (const auto& batch : joined(batches, group)) {
      seen.push_back(batch.value_or(-1));
    }
    return seen;
  });
  EXPECT_EQ(results[0].values, (Values{-1, -1, -1, -1}));
  EXPECT_EQ(results[1].values, (Values{1, 1, -1, -1}));
  EXPECT_EQ(results[2].values, (Values{2, 2, 2, 2}));
}

TEST(Joined, LoopsOverALoader) {
  // 5 samples on 2 ranks in batches of 2: a full batch each, then one sample for rank 0 only.
  const auto results = run_ranks(2, [](Group& group) {
    Sampler sampler(5, group, {.shuffle = false});
    auto loader = torch::data::make_data_loader(
        torch::data::datasets::TensorDataset(torch::arange(5)), sampler, 2);
    Values seen;
    for (const auto& batch : joined(*loader, group)) {
      seen.push_back(batch ? static_cast<double>(batch->size()) : 0);
      for (const auto& example : batch.value_or(std::vector<torch::data::TensorExample>{})) {
        seen.push_back(example.data.item<double>());
      }
    }
    return seen;
  });
  EXPECT_EQ(results[0].values, (Values{2, 0, 1, 1, 4}));
  EXPECT_EQ(results[1].values, (Values{2, 2, 3, 0}));
}

TEST(Joined, NobodyHasAnything) {
  for (const RankResult& result : run_ranks(2, [](Group& group) {
         const std::vector<int> batches;
         Values seen;
         for (const auto& batch : joined(batches, group)) {
           seen.push_back(batch.has_value());
         }
         return seen;
       })) {
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.values.empty());
  }
}

}  // namespace
}  // namespace lockstep
