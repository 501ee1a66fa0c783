#include "comm/random_collectives.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(RandomCollectives, ten_thousand_give_the_oracles_bits) { test::run_random(1, 10'000, 500); }

}  // namespace
}  // namespace lockstep
