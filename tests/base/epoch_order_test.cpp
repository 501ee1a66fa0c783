#include "base/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace lockstep {
namespace {

using Order = std::vector<std::int64_t>;

TEST(EpochOrder, IsAPermutationForEverySize) {
  for (const std::int64_t count : {0, 1, 2, 3, 63, 64, 65, 1000}) {
    Order order = epoch_order(count, 1, 0);
    std::ranges::sort(order);
    Order expected(static_cast<std::size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected) << count;
  }
}

TEST(EpochOrder, HangsOnSeedAndEpochOnly) {
  EXPECT_EQ(epoch_order(100, 1, 2), epoch_order(100, 1, 2));
  std::set<Order> different;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      different.insert(epoch_order(100, seed, epoch));
    }
  }
  EXPECT_EQ(different.size(), 16u);
}

// The order is part of what `--seed` promises, so it may not change unnoticed.
TEST(EpochOrder, KeepsItsValues) {
  EXPECT_EQ(epoch_order(8, 1, 0), (Order{4, 1, 7, 5, 3, 0, 6, 2}));
}

// Every element should come first about equally often.
TEST(EpochOrder, HasNoFavourites) {
  std::vector<int> first(5, 0);
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    ++first[static_cast<std::size_t>(epoch_order(5, seed, 0)[0])];
  }
  for (const int count : first) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
}

}  // namespace
}  // namespace lockstep
