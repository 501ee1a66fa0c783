#include "base/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lockstep::quantity {
namespace {

TEST(Quantity, whole_numbers_and_nothing_else) {
  EXPECT_EQ(whole("0"), 0);
  EXPECT_EQ(whole("-3"), -3);
  EXPECT_EQ(whole("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* text :
       {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "9223372036854775808", "-", "two"}) {
    EXPECT_EQ(whole(text), std::nullopt) << text;
  }
}

TEST(Quantity, decimals_are_finite) {
  EXPECT_EQ(decimal("3e-4"), 3e-4);
  EXPECT_EQ(decimal(".1"), 0.1);
  EXPECT_EQ(decimal("-25"), -25.0);
  for (const char* text : {"", "inf", "nan", "1e999", "1,5", "0.1x", "e5", "--1"}) {
    EXPECT_EQ(decimal(text), std::nullopt) << text;
  }
}

TEST(Quantity, counts_are_whole_and_not_negative) {
  EXPECT_EQ(count("8e9"), 8'000'000'000);
  EXPECT_EQ(count("8B"), 8'000'000'000);
  EXPECT_EQ(count("1.5T"), 1'500'000'000'000);
  EXPECT_EQ(count("124M"), 124'000'000);
  EXPECT_EQ(count("0.5K"), 500);
  EXPECT_EQ(count("0"), 0);
  for (const char* text : {"", "B", "-1", "1.5", "1e40", "8GB", "8 B", "8b", "nan", "inf"}) {
    EXPECT_EQ(count(text), std::nullopt) << text;
  }
}

TEST(Quantity, seconds_in_all_units) {
  EXPECT_EQ(seconds("300"), 300.0);
  EXPECT_EQ(seconds("300s"), 300.0);
  EXPECT_EQ(seconds("5m"), 300.0);
  EXPECT_EQ(seconds("1h"), 3600.0);
  EXPECT_EQ(seconds("500ms"), 0.5);
  for (const char* text : {"", "s", "5 m", "5d", "ms", "1h30m"}) {
    EXPECT_EQ(seconds(text), std::nullopt) << text;
  }
}

TEST(Quantity, bytes_are_whole_in_decimal_and_binary_units) {
  EXPECT_EQ(bytes("4096"), 4096);
  EXPECT_EQ(bytes("12B"), 12);
  EXPECT_EQ(bytes("4KB"), 4000);
  EXPECT_EQ(bytes("4KiB"), 4096);
  EXPECT_EQ(bytes("1.5MB"), 1'500'000);
  EXPECT_EQ(bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(bytes("2GiB"), std::int64_t{2} << 30);
  EXPECT_EQ(bytes("1TB"), 1'000'000'000'000);
  EXPECT_EQ(bytes("1TiB"), std::int64_t{1} << 40);
  for (const char* text :
       {"", "B", "KB", "0.5B", "1.0001KB", "4kb", "4 KB", "99999999TB", "GB80"}) {
    EXPECT_EQ(bytes(text), std::nullopt) << text;
  }
}

TEST(Quantity, bytes_are_shown_by_the_unit_that_they_fill) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(999'949), "999.9 KB");
  EXPECT_EQ(bytes_text(3'435'520), "3.44 MB");
  EXPECT_EQ(bytes_text(1'991'036'928), "1.99 GB");
}

TEST(Quantity, text_reads_back_to_the_same_value) {
  EXPECT_EQ(text_of(0.1), "0.1");
  EXPECT_EQ(text_of(300), "300");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 400) - 200);
    ASSERT_EQ(decimal(text_of(value)), value);
  }
}

}  // namespace
}  // namespace lockstep::quantity
