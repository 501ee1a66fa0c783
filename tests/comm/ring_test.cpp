#include "comm/schedules.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::kLeaf;
using test::kPartial;
using test::kResult;

// Block b's leaves in the order they are added in: from `first` on around the ring.
std::string chain(int first, int ranks) {
  std::string sum = std::to_string(first % ranks);
  for (int step = 1; step < ranks; ++step) {
    sum = "(" + sum + "+" + std::to_string((first + step) % ranks) + ")";
  }
  return sum;
}

class Ring : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Ring, ::testing::Range(2, 18));

TEST_P(Ring, sums_start_behind_the_owner_and_end_with_it) {
  const int ranks = GetParam();
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter}) {
    const Problem problem{.kind = kind, .ranks = ranks};
    test::expect_results(test::play(Algorithm::ring, problem), problem,
                         [&](int block) { return chain(block + 1, ranks); });
  }
  for (int root = 0; root < ranks; ++root) {
    const Problem problem{.kind = Kind::reduce, .ranks = ranks, .root = root};
    test::expect_results(test::play(Algorithm::ring, problem), problem,
                         [&](int) { return chain(root + 1, ranks); });
  }
}

TEST_P(Ring, gathers_and_spreads) {
  test::expect_tree(Algorithm::ring, {.kind = Kind::all_gather, .ranks = GetParam()});
  test::expect_tree(Algorithm::ring, {.kind = Kind::broadcast, .ranks = GetParam()});
}

// 2·(P-1) blocks in 2·(P-1) rounds each: with 4 ranks 1.5·X in 6.
TEST_P(Ring, every_rank_sends_what_the_formula_says) {
  const int ranks = GetParam();
  for (const auto& rank : test::play(Algorithm::ring, {.kind = Kind::all_reduce, .ranks = ranks})) {
    EXPECT_EQ(rank.rounds, 2 * (ranks - 1));
    EXPECT_EQ(rank.sent[kLeaf], 1);
    EXPECT_EQ(rank.sent[kPartial], ranks - 2);
    EXPECT_EQ(rank.sent[kResult], ranks - 1);
    EXPECT_EQ(rank.received, rank.sent);
  }
  const auto spread = test::play(Algorithm::ring, {.kind = Kind::broadcast, .ranks = ranks});
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(spread[static_cast<std::size_t>(r)].sent[kResult], r == ranks - 1 ? 0 : ranks);
  }
}

}  // namespace
}  // namespace lockstep::comm
