#include "comm/schedules.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::kLeaf;
using test::kPartial;
using test::kResult;

struct Hosts {
  int hosts;
  int each;
};

class Hierarchical : public ::testing::TestWithParam<Hosts> {
 protected:
  Problem problem(Kind kind) const {
    return {.kind = kind,
            .ranks = GetParam().hosts * GetParam().each,
            .ranks_per_host = GetParam().each};
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, Hierarchical,
                         ::testing::Values(Hosts{1, 2}, Hosts{1, 4}, Hosts{2, 1}, Hosts{2, 2},
                                           Hosts{2, 4}, Hosts{3, 1}, Hosts{3, 2}, Hosts{3, 4},
                                           Hosts{4, 2}, Hosts{5, 4}, Hosts{7, 1}, Hosts{2, 8}));

TEST_P(Hierarchical, adds_in_the_tree_where_hosts_have_a_power_of_two_of_ranks) {
  ASSERT_TRUE(adds_in_tree(Algorithm::hierarchical, 1, GetParam().each));
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast, Kind::reduce}) {
    test::expect_tree(Algorithm::hierarchical, problem(kind));
  }
}

TEST_P(Hierarchical, only_a_hosts_sums_cross_between_hosts) {
  const auto [hosts, each] = GetParam();
  for (const auto& rank : test::play(Algorithm::hierarchical, problem(Kind::all_reduce))) {
    const int inside = (each - 1) * hosts;
    const int between = hosts - 1;
    EXPECT_EQ(rank.rounds, 2 * (each - 1) + 2 * (hosts - 1));
    EXPECT_EQ(rank.sent[kLeaf], each == 1 ? between : inside);
    EXPECT_EQ(rank.sent[kPartial], each == 1 ? 0 : between);
    EXPECT_EQ(rank.sent[kResult], inside + between);
    EXPECT_EQ(rank.received, rank.sent);
  }
}

// Three ranks on each of two hosts: (0+1)+2 and (3+4)+5, where the tree of six is another.
TEST(HierarchicalOrder, is_the_hosts_trees_where_it_is_not_the_tree) {
  const Problem six{.kind = Kind::all_reduce, .ranks = 6, .ranks_per_host = 3};
  ASSERT_FALSE(adds_in_tree(Algorithm::hierarchical, 6, 3));
  const std::string sum = "(((0+1)+2)+((3+4)+5))";
  ASSERT_NE(sum, test::tree_of_ranks(6));
  test::expect_results(test::play(Algorithm::hierarchical, six), six, [&](int) { return sum; });
}

}  // namespace
}  // namespace lockstep::comm
