#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lockstep {
namespace {

// A 16-bit float format by its definition.
struct Format {
  int significand_bits;   // hidden bit included
  int smallest_exponent;  // of normal numbers
  int largest_exponent;
};
constexpr Format kBf16{8, -126, 127};
constexpr Format kF16{11, -14, 15};

// The oracle: IEEE 754 rounding to nearest even by exact arithmetic in fp64.
double rounded(float value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) {
    return value;
  }
  const int exponent = std::max(std::ilogb(value), format.smallest_exponent);
  const double unit = std::ldexp(1.0, exponent - format.significand_bits + 1);
  const double result = std::nearbyint(value / unit) * unit;
  const double limit = std::ldexp(1.0, format.largest_exponent + 1);
  return std::abs(result) >= limit ? std::copysign(INFINITY, value) : result;
}

template <class Half>
double value_of(Half half, const Format& format) {
  const int stored = format.significand_bits - 1;
  const int fraction = half.bits & ((1 << stored) - 1);
  const int exponent = (half.bits & 0x7fff) >> stored;
  const double sign = (half.bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0) {
    return sign * std::ldexp(fraction, format.smallest_exponent - stored);
  }
  if (exponent == (0x7fff >> stored)) {
    return fraction == 0 ? sign * INFINITY : std::copysign(NAN, sign);
  }
  return sign *
         std::ldexp((1 << stored) + fraction, exponent - 1 + format.smallest_exponent - stored);
}

void expect_same(double got, double want, std::uint32_t pattern) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << pattern;
  } else {
    ASSERT_EQ(got, want) << pattern;
  }
  ASSERT_EQ(std::signbit(got), std::signbit(want)) << pattern;
}

void check_narrowing(std::uint32_t pattern) {
  const float value = std::bit_cast<float>(pattern);
  ASSERT_NO_FATAL_FAILURE(
      expect_same(to_float(to_bfloat16(value)), rounded(value, kBf16), pattern));
  ASSERT_NO_FATAL_FAILURE(expect_same(to_float(to_float16(value)), rounded(value, kF16), pattern));
}

TEST(Float16, every_pattern_widens_to_its_defined_value) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    ASSERT_NO_FATAL_FAILURE(
        expect_same(to_float(Bfloat16{bits}), value_of(Bfloat16{bits}, kBf16), pattern));
    ASSERT_NO_FATAL_FAILURE(
        expect_same(to_float(Float16{bits}), value_of(Float16{bits}, kF16), pattern));
  }
}

TEST(Float16, every_pattern_comes_back_from_a_round_trip) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float bf16 = to_float(Bfloat16{bits});
    const float f16 = to_float(Float16{bits});
    if (std::isnan(bf16)) {
      ASSERT_EQ(to_bfloat16(bf16).bits, bits | 0x0040);  // made quiet, else unchanged
    } else {
      ASSERT_EQ(to_bfloat16(bf16).bits, bits);
    }
    if (std::isnan(f16)) {
      ASSERT_EQ(to_float16(f16).bits, (bits & 0x8000) | 0x7e00);
    } else {
      ASSERT_EQ(to_float16(f16).bits, bits);
    }
  }
}

// For every sign, exponent and upper fraction: what lies at, below and above each kind of tie.
TEST(Float16, narrowing_equals_exact_rounding_at_and_around_ties) {
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x07ffu, 0x0800u, 0x0fffu, 0x1000u, 0x1001u,
                                      0x1fffu, 0x2000u, 0x2fffu, 0x3000u, 0x3001u, 0x4000u, 0x7fffu,
                                      0x8000u, 0x8001u, 0xb000u, 0xefffu, 0xf000u, 0xffffu}) {
      ASSERT_NO_FATAL_FAILURE(check_narrowing(upper << 16 | lower));
    }
  }
}

TEST(Float16, narrowing_equals_exact_rounding_on_random_patterns) {
  std::mt19937 random(12);
  for (int i = 0; i < 2'000'000; ++i) {
    ASSERT_NO_FATAL_FAILURE(check_narrowing(static_cast<std::uint32_t>(random())));
  }
}

TEST(Float16, known_values) {
  EXPECT_EQ(to_bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_float(to_bfloat16(259.0f)), 260.0f);     // tie between 258 and 260, to even
  EXPECT_EQ(to_float(to_bfloat16(257.0f)), 256.0f);     // tie, to even
  EXPECT_EQ(to_float(to_float16(65519.0f)), 65504.0f);  // the largest f16
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_float16(-0x1p-25f).bits, 0x8000);  // tie with zero, to even
  EXPECT_EQ(to_float16(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace lockstep
