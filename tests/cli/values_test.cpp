#include "cli/values.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::cli {
namespace {

CommandLine given(const std::string& value) {
  return {.print = {}, .given = {{"--x", value}}, .rest = {}};
}

TEST(Values, absent_options_have_none) {
  const CommandLine line;
  EXPECT_EQ(whole_value(line, "--x", {0, 9}), std::nullopt);
  EXPECT_EQ(decimal_value(line, "--x"), std::nullopt);
  EXPECT_EQ(bytes_value(line, "--x", 9), std::nullopt);
  EXPECT_EQ(seconds_value(line, "--x"), std::nullopt);
}

TEST(Values, bounds_are_inclusive) {
  EXPECT_EQ(whole_value(given("2"), "--x", {2, 4}), 2);
  EXPECT_EQ(whole_value(given("4"), "--x", {2, 4}), 4);
  EXPECT_EQ(decimal_value(given("0"), "--x"), 0);
  EXPECT_EQ(bytes_value(given("1KB"), "--x", 1000), 1000);
  EXPECT_EQ(seconds_value(given("2m"), "--x"), 120);
}

TEST(Values, the_rest_is_refused_by_name) {
  for (const char* const wrong : {"1", "5", "", "x", "3.0", "0x3", " 3"}) {
    EXPECT_THROW(whole_value(given(wrong), "--x", {2, 4}), UsageError) << wrong;
  }
  for (const char* const wrong : {"-0.1", "nan", "inf", "", "1,5"}) {
    EXPECT_THROW(decimal_value(given(wrong), "--x"), UsageError) << wrong;
  }
  for (const char* const wrong : {"1001", "-1", "1XB", "0.5"}) {
    EXPECT_THROW(bytes_value(given(wrong), "--x", 1000), UsageError) << wrong;
  }
  for (const char* const wrong : {"0", "-1", "1.5", "500ms", "soon"}) {
    EXPECT_THROW(seconds_value(given(wrong), "--x"), UsageError) << wrong;
  }
}

}  // namespace
}  // namespace lockstep::cli
