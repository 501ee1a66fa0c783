#include "comm/schedules.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::kLeaf;
using test::kPartial;
using test::kResult;

class HalvingDoubling : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, HalvingDoubling, ::testing::Values(2, 4, 8, 16, 32));

TEST_P(HalvingDoubling, gives_every_collective_the_trees_sums) {
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast, Kind::reduce}) {
    test::expect_tree(Algorithm::halving_doubling, {.kind = kind, .ranks = GetParam()});
  }
}

TEST_P(HalvingDoubling, every_rank_sends_what_the_formula_says) {
  const int ranks = GetParam();
  int rounds = 0;
  while (1 << rounds < ranks) {
    ++rounds;
  }
  for (const auto& rank :
       test::play(Algorithm::halving_doubling, {.kind = Kind::all_reduce, .ranks = ranks})) {
    EXPECT_EQ(rank.rounds, 2 * rounds);
    EXPECT_EQ(rank.sent[kLeaf], ranks / 2);
    EXPECT_EQ(rank.sent[kPartial], ranks / 2 - 1);
    EXPECT_EQ(rank.sent[kResult], ranks - 1);
    EXPECT_EQ(rank.received, rank.sent);
  }
}

TEST(HalvingDoublingRanks, must_be_a_power_of_two) {
  for (const int ranks : {3, 5, 6, 7, 12}) {
    EXPECT_THROW(schedule_of(Algorithm::halving_doubling, {.ranks = ranks}), UsageError);
  }
}

}  // namespace
}  // namespace lockstep::comm
