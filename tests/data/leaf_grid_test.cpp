#include "data/leaf_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

namespace lockstep::data {
namespace {

using Order = std::vector<std::int64_t>;

// All samples of `steps` steps, leaf by leaf.
Order samples(LeafGrid& grid, const LeafGrid::Shape& shape, std::int64_t steps) {
  Order all;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t leaf = 0; leaf < shape.leaves; ++leaf) {
      const Order windows = grid.windows_of(step, leaf);
      all.insert(all.end(), windows.begin(), windows.end());
    }
  }
  return all;
}

TEST(LeafGrid, VisitsEachWindowOncePerEpochAlsoAcrossStepBoundaries) {
  const LeafGrid::Shape shape{.windows = 7, .leaves = 2, .micro_batch = 2};
  LeafGrid grid(shape, 3);
  const Order all = samples(grid, shape, 7);  // 28 samples: four epochs of seven
  ASSERT_EQ(all.size(), 28u);
  std::set<Order> orders;
  for (auto epoch = all.begin(); epoch != all.end(); epoch += 7) {
    EXPECT_EQ(std::set<std::int64_t>(epoch, epoch + 7).size(), 7u);
    orders.insert(Order(epoch, epoch + 7));
  }
  EXPECT_EQ(orders.size(), 4u);
}

// Cases D38: ranks see disjoint windows whose union is the epoch.
TEST(LeafGrid, D38_leaves_share_an_epoch_out) {
  const LeafGrid::Shape shape{.windows = 8, .leaves = 2, .micro_batch = 1};
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    LeafGrid grid(shape, 1);
    std::set<std::int64_t> both;
    for (std::int64_t step = epoch * 4; step < (epoch + 1) * 4; ++step) {
      both.insert(grid.windows_of(step, 0)[0]);
      both.insert(grid.windows_of(step, 1)[0]);
    }
    EXPECT_EQ(both.size(), 8u);
  }
}

TEST(LeafGrid, GivesLeavesTheSameWindowsWhateverWasAskedBefore) {
  const LeafGrid::Shape shape{.windows = 5, .leaves = 4, .micro_batch = 3};
  LeafGrid in_order(shape, 9);
  const Order expected = samples(in_order, shape, 4);
  for (std::int64_t leaf = shape.leaves; leaf-- > 0;) {
    LeafGrid one_rank(shape, 9);
    for (std::int64_t step = 4; step-- > 0;) {
      const Order windows = one_rank.windows_of(step, leaf);
      EXPECT_TRUE(std::ranges::equal(
          windows,
          std::span(expected).subspan(static_cast<std::size_t>((step * 4 + leaf) * 3), 3)));
    }
  }
}

// Case D37: fewer windows than samples in a step repeat in the next epoch; nobody gets none.
TEST(LeafGrid, D37_three_windows_for_seven_leaves) {
  const LeafGrid::Shape shape{.windows = 3, .leaves = 7, .micro_batch = 1};
  LeafGrid grid(shape, 1);
  const Order all = samples(grid, shape, 3);
  for (std::int64_t window = 0; window < 3; ++window) {
    EXPECT_EQ(std::ranges::count(all, window), 7);
  }
}

}  // namespace
}  // namespace lockstep::data
