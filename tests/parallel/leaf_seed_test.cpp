#include "parallel/leaf_seed.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::parallel {
namespace {

TEST(LeafSeed, HangsOnEachOfTheThreeAndFitsIn32Bits) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::int64_t step = 0; step < 10; ++step) {
      for (std::int64_t leaf = 0; leaf < 10; ++leaf) {
        seeds.insert(leaf_seed(seed, step, leaf));
      }
    }
  }
  EXPECT_EQ(seeds.size(), 1000u);
  EXPECT_LT(*seeds.rbegin(), std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace lockstep::parallel
