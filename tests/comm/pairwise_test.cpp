#include "comm/schedules.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::kLeaf;
using test::kPartial;
using test::kResult;

class Pairwise : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Pairwise, ::testing::Range(2, 18));

TEST_P(Pairwise, gives_every_collective_the_trees_sums) {
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast,
                          Kind::reduce, Kind::all_to_all}) {
    test::expect_tree(Algorithm::pairwise, {.kind = kind, .ranks = GetParam()});
  }
}

TEST_P(Pairwise, every_rank_sends_what_the_formula_says) {
  const int ranks = GetParam();
  for (const auto& rank :
       test::play(Algorithm::pairwise, {.kind = Kind::all_reduce, .ranks = ranks})) {
    EXPECT_EQ(rank.rounds, 2 * (ranks - 1));
    EXPECT_EQ(rank.sent[kLeaf], ranks - 1);
    EXPECT_EQ(rank.sent[kPartial], 0);
    EXPECT_EQ(rank.sent[kResult], ranks - 1);
    EXPECT_EQ(rank.received, rank.sent);
  }
  for (const auto& rank :
       test::play(Algorithm::pairwise, {.kind = Kind::all_to_all, .ranks = ranks})) {
    EXPECT_EQ(rank.sent[kLeaf], ranks - 1);
    EXPECT_EQ(rank.received[kLeaf], ranks - 1);
  }
  const auto spread =
      test::play(Algorithm::pairwise, {.kind = Kind::broadcast, .ranks = ranks, .root = 1});
  for (int r = 0; r < ranks; ++r) {
    const auto& rank = spread[static_cast<std::size_t>(r)];
    EXPECT_EQ(rank.sent[kResult], r == 1 ? 2 * (ranks - 1) : r == 0 ? 0 : ranks - 1) << r;
    EXPECT_EQ(rank.received[kResult], r == 1 ? 0 : ranks) << r;
  }
}

}  // namespace
}  // namespace lockstep::comm
