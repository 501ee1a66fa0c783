#include "lockstep/data.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::RankResult;
using test::run_ranks;

using Values = std::vector<double>;

TEST(Average, CountsEachValueOnceHoweverTheyLieOnRanks) {
  // 0 … 9 with 7 on rank 0, 3 on rank 1 and none on rank 2: a mean of means would give 5.5.
  for (const RankResult& result : run_ranks(3, [](Group& group) {
         Average average(group, "validation loss");
         if (group.rank() == 0) {
           average.add(torch::arange(7, torch::kFloat32));
         } else if (group.rank() == 1) {
           average.add(7 + 8, 2);
           average.add(9, 1);
         }
         const double first = average.result();
         average.add(group.rank(), 1);  // starts anew
         return Values{first, average.result()};
       })) {
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.values, (Values{4.5, 1.0}));
  }
}

TEST(Average, HasTheSameBitsOnAllRanks) {
  const auto results = run_ranks(3, [](Group& group) {
    Average average(group);
    average.add(1.0 / (3 + group.rank()), 1 + group.rank());
    return Values{average.result()};
  });
  EXPECT_EQ(results[0].values, results[1].values);
  EXPECT_EQ(results[0].values, results[2].values);
  EXPECT_NEAR(results[0].values.at(0), (1.0 / 3 + 1.0 / 4 + 1.0 / 5) / 6, 1e-15);
}

TEST(Average, OfNothingIsAnErrorOnEveryRank) {
  for (const RankResult& result : run_ranks(2, [](Group& group) {
         Average average(group, "validation loss");
         average.add(torch::empty({0}));
         return Values{average.result()};
       })) {
    EXPECT_NE(result.error.find("Average 'validation loss': no rank has added a value"),
              std::string::npos)
        << result.error;
  }
}

TEST(Average, RefusesANegativeCount) {
  for (const RankResult& result : run_ranks(1, [](Group& group) {
         Average average(group);
         average.add(1, -1);
         return Values{};
       })) {
    EXPECT_EQ(result.error, "Average 'average': expected a count ≥ 0, got -1");
  }
}

}  // namespace
}  // namespace lockstep
