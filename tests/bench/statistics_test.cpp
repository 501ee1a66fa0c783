#include "bench/common/statistics.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

TEST(Statistics, median_of_odd_and_even_numbers_of_samples) {
  EXPECT_EQ(spread_of({3, 1, 2}).median, 2);
  EXPECT_EQ(spread_of({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(spread_of({7}).median, 7);
}

TEST(Statistics, least_and_most) {
  const Spread spread = spread_of({5, 9, 1, 4});
  EXPECT_EQ(spread.least, 1);
  EXPECT_EQ(spread.most, 9);
}

TEST(Statistics, no_sample_has_no_spread) { EXPECT_THROW(spread_of({}), InvariantBroken); }

TEST(Statistics, ratios_go_element_by_element) {
  EXPECT_EQ(ratios({2, 9}, {4, 3}), (std::vector<double>{0.5, 3}));
  EXPECT_THROW(ratios({1, 2}, {1}), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::bench
