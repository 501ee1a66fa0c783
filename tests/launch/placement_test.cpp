#include "launch/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep::launch {
namespace {

std::vector<int> cores_from(int first, int count) {
  std::vector<int> cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

TEST(Placement, blocks_are_contiguous_and_cover_all_cores_once) {
  for (int cores = 1; cores <= 20; ++cores) {
    for (int ranks = 1; ranks <= cores; ++ranks) {
      const auto all = cores_from(3, cores);
      const Placement placement = place(all, std::nullopt, ranks);
      ASSERT_EQ(placement.cores_of_rank.size(), static_cast<std::size_t>(ranks));
      std::vector<int> joined;
      std::size_t smallest = all.size();
      std::size_t largest = 0;
      for (const auto& block : placement.cores_of_rank) {
        smallest = std::min(smallest, block.size());
        largest = std::max(largest, block.size());
        joined.insert(joined.end(), block.begin(), block.end());
      }
      EXPECT_EQ(joined, all);
      EXPECT_GE(smallest, 1u);
      EXPECT_LE(largest - smallest, 1u);
      EXPECT_EQ(placement.threads_per_rank, cores / ranks);
    }
  }
}

TEST(Placement, more_ranks_than_cores_take_turns) {
  const std::vector<int> cores{4, 6, 9};
  const Placement placement = place(cores, std::nullopt, 7);
  const std::vector<std::vector<int>> expected{{4}, {6}, {9}, {4}, {6}, {9}, {4}};
  EXPECT_EQ(placement.cores_of_rank, expected);
  EXPECT_EQ(placement.threads_per_rank, 1);
}

TEST(Placement, gaps_between_cores_stay) {
  const Placement placement = place(std::vector<int>{1, 3, 8, 9}, std::nullopt, 2);
  const std::vector<std::vector<int>> expected{{1, 3}, {8, 9}};
  EXPECT_EQ(placement.cores_of_rank, expected);
}

TEST(Placement, L55_a_quota_limits_threads_but_not_cores) {
  struct Case {
    double quota;
    int ranks;
    int threads;
  };
  for (const Case& one : {Case{16.0, 2, 4}, Case{8.0, 2, 4}, Case{4.0, 2, 2}, Case{3.9, 2, 1},
                          Case{1.5, 1, 1}, Case{0.5, 1, 1}, Case{0.5, 8, 1}, Case{2.0, 4, 1}}) {
    const Placement placement = place(cores_from(0, 8), one.quota, one.ranks);
    EXPECT_EQ(placement.threads_per_rank, one.threads) << one.quota << " " << one.ranks;
    EXPECT_EQ(placement.cores_of_rank.front().size(), static_cast<std::size_t>(8 / one.ranks));
  }
}

}  // namespace
}  // namespace lockstep::launch
