#include "cli/figures.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

TEST(Figures, thousands_are_apart) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(8'000'000'000), "8,000,000,000");
  EXPECT_EQ(with_commas(-1234), "-1,234");
  EXPECT_EQ(with_commas(-123), "-123");
}

TEST(Figures, bytes_in_both_units) {
  EXPECT_EQ(in_gb(3'750'000'000), "3.75");
  EXPECT_EQ(in_gib(128'000'000'000), "119.21");
}

TEST(Figures, durations_choose_their_unit) {
  EXPECT_EQ(duration(0.0456), "45.6 us");
  EXPECT_EQ(duration(1.234), "1.234 ms");
  EXPECT_EQ(duration(67'890), "67.89 s");
}

TEST(Figures, cells_are_filled_and_never_cut) {
  EXPECT_EQ(right("ab", 4), "  ab");
  EXPECT_EQ(left("ab", 4), "ab  ");
  EXPECT_EQ(right("abcde", 4), "abcde");
  EXPECT_EQ(left("abcde", 4), "abcde");
}

}  // namespace
}  // namespace lockstep::cli
