#include "comm/schedules.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::kLeaf;
using test::kPartial;
using test::kResult;

class Coordinator : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Coordinator, ::testing::Range(2, 18));

TEST_P(Coordinator, gives_every_collective_the_trees_sums) {
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast,
                          Kind::reduce, Kind::gather, Kind::scatter}) {
    test::expect_tree(Algorithm::coordinator, {.kind = kind, .ranks = GetParam()});
  }
}

// spec.md: (P−1)·X in and (P−1)·X out of one rank's link.
TEST_P(Coordinator, one_rank_carries_it_all) {
  const int ranks = GetParam();
  const auto played =
      test::play(Algorithm::coordinator, {.kind = Kind::all_reduce, .ranks = ranks});
  for (int r = 0; r < ranks; ++r) {
    const auto& rank = played[static_cast<std::size_t>(r)];
    const int times = r == 0 ? ranks - 1 : 1;
    EXPECT_EQ(rank.rounds, 2);
    EXPECT_EQ(rank.sent[r == 0 ? kResult : kLeaf], times * ranks);
    EXPECT_EQ(rank.received[r == 0 ? kLeaf : kResult], times * ranks);
    EXPECT_EQ(rank.sent[kPartial], 0);
  }
}

}  // namespace
}  // namespace lockstep::comm
