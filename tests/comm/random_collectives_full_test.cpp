// A million draws, for ./check --full.
#include "comm/random_collectives.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

class RandomCollectivesFull : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomCollectivesFull, ::testing::Range<std::uint64_t>(2, 12));

TEST_P(RandomCollectivesFull, a_hundred_thousand_give_the_oracles_bits) {
  test::run_random(GetParam(), 100'000, 2'000);
}

}  // namespace
}  // namespace lockstep
