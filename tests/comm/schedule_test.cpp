#include "comm/schedule.h"

#include "comm/texts.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

std::string refusal(Algorithm algorithm, const Problem& problem) {
  try {
    require_schedule(algorithm, problem);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, what_an_algorithm_has_not_is_refused_with_those_that_have) {
  test::expect_match(refusal(Algorithm::ring, {.kind = Kind::gather}),
                     "^gather: algorithm ring has none; use auto or one of tree, coordinator$");
  test::expect_match(refusal(Algorithm::tree, {.kind = Kind::all_to_all}),
                     "^all_to_all: algorithm tree has none; use auto or one of pairwise$");
  test::expect_match(refusal(Algorithm::direct, {.kind = Kind::reduce}), "direct has none");
  test::expect_match(refusal(Algorithm::halving_doubling, {.ranks = 6}),
                     "halving-doubling needs a power of two of ranks, got 6; use auto or pairwise");
  test::expect_match(refusal(Algorithm::hierarchical, {.ranks = 6, .ranks_per_host = 0}),
                     "needs hosts with equally many ranks");
  EXPECT_EQ(refusal(Algorithm::halving_doubling, {.ranks = 8}), "");
}

TEST(Schedule, one_rank_scales_and_rounds_what_it_has_and_sends_nothing) {
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::reduce}) {
    const Schedule schedule = schedule_of(Algorithm::ring, {.kind = kind, .ranks = 1});
    ASSERT_EQ(schedule.size(), 1u);
    EXPECT_TRUE(schedule[0].sends.empty() && schedule[0].receives.empty());
    ASSERT_EQ(schedule[0].additions.size(), 1u);
    EXPECT_EQ(schedule[0].additions[0].into, Form::result);
  }
  EXPECT_TRUE(schedule_of(Algorithm::tree, {.kind = Kind::gather, .ranks = 1}).empty());
}

TEST(Schedule, hosts_are_uniform_when_each_has_as_many_ranks_in_a_row) {
  EXPECT_EQ(uniform_hosts({}, 5), 5);
  EXPECT_EQ(uniform_hosts({7, 7, 7}, 3), 3);
  EXPECT_EQ(uniform_hosts({1, 1, 0, 0}, 4), 2);
  EXPECT_EQ(uniform_hosts({0, 1, 2}, 3), 1);
  EXPECT_EQ(uniform_hosts({0, 0, 1}, 3), 0);
  EXPECT_EQ(uniform_hosts({0, 1, 0, 1}, 4), 0);
  EXPECT_EQ(uniform_hosts({0, 0, 1, 2}, 4), 0);
  EXPECT_EQ(uniform_hosts({0, 0, 1, 1, 0, 0}, 6), 0);
}

TEST(Schedule, reversed_swaps_who_sends) {
  const Schedule there{{.sends = {{1, Form::result, {0}}}}, {.receives = {{2, Form::result, {3}}}}};
  const Schedule back = reversed(there);
  ASSERT_EQ(back.size(), 2u);
  ASSERT_EQ(back[0].sends.size(), 1u);
  EXPECT_EQ(back[0].sends[0].peer, 2);
  EXPECT_EQ(back[0].sends[0].blocks, std::vector<int>{3});
  ASSERT_EQ(back[1].receives.size(), 1u);
  EXPECT_EQ(back[1].receives[0].peer, 1);
}

TEST(Algorithms, are_known_by_their_names) {
  for (const Algorithm algorithm : kAlgorithms) {
    EXPECT_EQ(algorithm_named(lockstep::name_of(algorithm)), algorithm);
  }
  EXPECT_EQ(algorithm_named("halving-doubling"), Algorithm::halving_doubling);
  EXPECT_EQ(algorithm_named("quick"), std::nullopt);
}

TEST(Algorithms, declare_whether_they_add_in_the_tree) {
  for (const int ranks : {1, 2, 3, 4, 6, 7, 8}) {
    const bool power = (ranks & (ranks - 1)) == 0;
    EXPECT_TRUE(adds_in_tree(Algorithm::automatic, ranks, ranks));
    EXPECT_TRUE(adds_in_tree(Algorithm::direct, ranks, ranks));
    EXPECT_TRUE(adds_in_tree(Algorithm::pairwise, ranks, ranks));
    EXPECT_TRUE(adds_in_tree(Algorithm::tree, ranks, ranks));
    EXPECT_TRUE(adds_in_tree(Algorithm::coordinator, ranks, ranks));
    EXPECT_EQ(adds_in_tree(Algorithm::halving_doubling, ranks, 1), power);
    EXPECT_EQ(adds_in_tree(Algorithm::hierarchical, 24, ranks), power);
    EXPECT_FALSE(adds_in_tree(Algorithm::ring, ranks, ranks));
    EXPECT_FALSE(adds_in_tree(Algorithm::native, ranks, ranks));
  }
}

}  // namespace
}  // namespace lockstep::comm
