#include "bench/common/table.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

TEST(Table, first_column_to_the_left_others_to_the_right) {
  EXPECT_EQ(table({{"name", "ms"}, {"a", "12.5"}, {"longer", "1"}}),
            "name      ms\n"
            "a       12.5\n"
            "longer     1\n");
  EXPECT_EQ(table({}), "");
}

TEST(Table, fixed_digits) {
  EXPECT_EQ(fixed(1.005, 1), "1.0");
  EXPECT_EQ(fixed(-2, 0), "-2");
}

}  // namespace
}  // namespace lockstep::bench
