#include "comm/schedules.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::kLeaf;
using test::kPartial;
using test::kResult;

class Tree : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Tree, ::testing::Range(2, 18));

TEST_P(Tree, gives_every_collective_the_trees_sums) {
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast,
                          Kind::reduce, Kind::gather, Kind::scatter}) {
    test::expect_tree(Algorithm::tree, {.kind = kind, .ranks = GetParam()});
  }
}

TEST_P(Tree, each_rank_but_root_passes_everything_on_once) {
  const int ranks = GetParam();
  int rounds = 0;
  while (1 << rounds < ranks) {
    ++rounds;
  }
  for (int root = 0; root < ranks; ++root) {
    const auto sums =
        test::play(Algorithm::tree, {.kind = Kind::reduce, .ranks = ranks, .root = root});
    const auto spread =
        test::play(Algorithm::tree, {.kind = Kind::broadcast, .ranks = ranks, .root = root});
    for (int r = 0; r < ranks; ++r) {
      const auto& sum = sums[static_cast<std::size_t>(r)];
      EXPECT_EQ(sum.sent[kLeaf] + sum.sent[kPartial], r == root ? 0 : ranks);
      EXPECT_LE(sum.rounds, rounds);
      EXPECT_EQ(spread[static_cast<std::size_t>(r)].received[kResult], r == root ? 0 : ranks);
    }
    EXPECT_EQ(sums[static_cast<std::size_t>(root)].sent[kResult], 0);
  }
}

TEST_P(Tree, gathering_sends_each_block_no_further_than_its_depth) {
  const int ranks = GetParam();
  const auto played = test::play(Algorithm::tree, {.kind = Kind::gather, .ranks = ranks});
  int sent = 0;
  int bits = 0;
  for (int r = 0; r < ranks; ++r) {
    sent += played[static_cast<std::size_t>(r)].sent[kResult];
    for (int rest = r; rest > 0; rest &= rest - 1) {
      ++bits;  // to rank 0 block r goes over one rank per set bit of r
    }
  }
  EXPECT_EQ(sent, bits);
}

}  // namespace
}  // namespace lockstep::comm
