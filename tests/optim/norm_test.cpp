#include "optim/norm.h"

#include "base/float16.h"
#include "base/range.h"
#include "base/simd_targets.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace lockstep::optim {
namespace {

using test::on_every_target;

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kMinDenormal = std::numeric_limits<double>::denorm_min();

// The oracle: a sum of non-negative doubles as bits of a binary number, slow and plain.
class BitSum {
 public:
  void add(double value) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    for (int bit = 0; bit < 53; ++bit) {
      if ((significand >> bit & 1) != 0) {
        flip_from(exponent - 53 + bit);
      }
    }
  }

  double value() const {
    std::vector<int> set;
    for (const auto& [position, on] : bits_) {
      if (on) {
        set.push_back(position);
      }
    }
    if (set.empty()) {
      return 0.0;
    }
    const int top = set.back();
    const int unit = std::max(top - 52, -1074);  // the last bit a double has here
    double result = 0;
    for (const int position : set) {
      result += position >= unit ? std::ldexp(1.0, position) : 0.0;  // exact
    }
    return result + rounding(set, unit);
  }

 private:
  void flip_from(int position) {
    while (bits_[position]) {
      bits_[position++] = false;
    }
    bits_[position] = true;
  }

  // One unit if what lies below `unit` is more than half of it, or half and the unit's bit is set.
  static double rounding(const std::vector<int>& set, int unit) {
    const bool half = std::ranges::binary_search(set, unit - 1);
    const bool more = set.front() < unit - 1;
    const bool odd = std::ranges::binary_search(set, unit);
    return half && (more || odd) ? std::ldexp(1.0, unit) : 0.0;
  }

  std::map<int, bool> bits_;
};

ExactSum exact(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) {
    sum.add(value);
  }
  return sum;
}

double oracle(const std::vector<double>& values) {
  BitSum sum;
  for (const double value : values) {
    sum.add(value);
  }
  return sum.value();
}

TEST(ExactSum, of_nothing_and_of_one_value_is_that_value) {
  EXPECT_EQ(ExactSum().value(), 0.0);
  for (const double value :
       {0.0, -0.0, 1.0, 0.1, kMax, kMinDenormal, 0x1p-1022, 0x1.fffffffffffffp-1023, 0x1p1023,
        3e-310, 1e300, 0x1p31, 0x1p32, 0x1p33}) {
    EXPECT_EQ(exact({value}).value(), value) << value;
  }
}

TEST(ExactSum, rounds_to_nearest_even_once) {
  EXPECT_EQ(exact({1.0, 0x1p-53}).value(), 1.0);                          // tie, even below
  EXPECT_EQ(exact({1.0 + 0x1p-52, 0x1p-53}).value(), 1.0 + 0x1p-51);      // tie, even above
  EXPECT_EQ(exact({1.0, 0x1p-53, kMinDenormal}).value(), 1.0 + 0x1p-52);  // just above the tie
  EXPECT_EQ(exact({1.0, 0x1p-53, 0x1p-120}).value(), 1.0 + 0x1p-52);
  EXPECT_EQ(exact({0x1p-1074, 0x1p-1022}).value(), 0x1p-1022 + 0x1p-1074);
  EXPECT_EQ(exact({kMax, kMax}).value(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(exact({kMax, 0x1p969}).value(), kMax);
  EXPECT_EQ(exact({kMax, 0x1p970}).value(), std::numeric_limits<double>::infinity());
}

TEST(ExactSum, equals_the_oracle_on_random_values_of_all_sizes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values;
    const int spread = 1 + static_cast<int>(random() % 300);
    const int base = static_cast<int>(random() % 2000) - 1080;
    const std::size_t count = 1 + random() % 60;
    while (values.size() < count) {
      const double fraction = static_cast<double>(random() >> 11) * 0x1p-53;
      const int exponent = std::min(base + static_cast<int>(random() % spread), 1000);
      values.push_back(std::ldexp(fraction, exponent));
    }
    ASSERT_EQ(exact(values).value(), oracle(values)) << round;
  }
}

TEST(ExactSum, digits_do_not_hang_on_order_or_split) {
  std::mt19937_64 random(6);
  std::vector<double> values{kMax, kMinDenormal, 1e300, 1.0, 0x1p-1022, 0.0};
  while (values.size() < 200) {
    values.push_back(std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52,
                                static_cast<int>(random() % 1800) - 1000));
  }
  const auto want = exact(values).digits();
  for (int round = 0; round < 50; ++round) {
    std::ranges::shuffle(values, random);
    const auto cut = values.begin() + static_cast<std::ptrdiff_t>(random() % values.size());
    ExactSum left = exact({values.begin(), cut});
    const ExactSum right = exact({cut, values.end()});
    std::array<std::int64_t, ExactSum::kDigits> summed = left.digits();
    for (int i = 0; i < ExactSum::kDigits; ++i) {
      summed[i] += right.digits()[i];  // what the ranks' all_reduce does
    }
    ASSERT_EQ(ExactSum::from_digits(summed).digits(), want);
    left.add(right);
    ASSERT_EQ(left.digits(), want);
  }
}

TEST(ExactSum, many_equal_values_carry_through_all_digits) {
  ExactSum sum = exact({kMax});
  for (int doubling = 0; doubling < 40; ++doubling) {  // 2^40 additions' worth
    const ExactSum same = sum;
    sum.add(same);
  }
  EXPECT_EQ(sum.value(), std::numeric_limits<double>::infinity());
  ExactSum ones = exact({1.0});
  for (int doubling = 0; doubling < 62; ++doubling) {
    const ExactSum same = ones;
    ones.add(same);
  }
  EXPECT_EQ(ones.value(), 0x1p62);
  ones.clear();
  EXPECT_EQ(ones.value(), 0.0);
}

TEST(ExactSum, negative_and_non_finite_values_break_an_invariant) {
  ExactSum sum;
  for (const double value :
       {-1.0, -kMinDenormal, double(INFINITY), double(-INFINITY), double(NAN)}) {
    EXPECT_THROW(sum.add(value), InvariantBroken) << value;
  }
  EXPECT_EQ(sum.value(), 0.0);
  EXPECT_THROW(ExactSum::from_digits(std::vector<std::int64_t>(3)), InvariantBroken);
}

// The documented order inside one granule: 8 running lanes, halves folded onto each other.
double granule_squares(const std::vector<double>& elements) {
  double lanes[8] = {};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    lanes[i % 8] += elements[i] * elements[i];
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
std::vector<T> random_elements(std::size_t count) {
  static std::mt19937_64 random(9);
  std::vector<T> elements;
  while (elements.size() < count) {
    const auto bits = random();
    elements.push_back(from_double<T>(std::ldexp(static_cast<double>(bits >> 11) * 0x1p-53 - 0.5,
                                                 static_cast<int>(bits & 31) - 18)));
  }
  return elements;
}

template <class T>
SquareSum squares_of(const std::vector<T>& elements) {
  SquareSum squares;
  squares.add(elements.data(), DtypeOf<T>::value, static_cast<std::int64_t>(elements.size()));
  return squares;
}

template <class T>
void check_squares() {
  for (const std::size_t count : {0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1000, 64 * 70 + 3}) {
    const auto elements = random_elements<T>(count);
    ExactSum want;
    for (std::size_t begin = 0; begin < count; begin += kGranule) {
      std::vector<double> granule;
      for (std::size_t i = begin; i < std::min(count, begin + kGranule); ++i) {
        granule.push_back(as_double(elements[i]));
      }
      want.add(granule_squares(granule));
    }
    const SquareSum squares = squares_of(elements);
    ASSERT_EQ(squares.sum.digits(), want.digits()) << count;
    ASSERT_TRUE(squares.all_finite);
  }
}

TEST(SquareSum, equals_the_documented_lanes_on_every_target) {
  on_every_target([] {
    check_squares<float>();
    check_squares<double>();
    check_squares<Bfloat16>();
    check_squares<Float16>();
  });
}

TEST(SquareSum, any_split_at_granules_and_any_order_gives_the_same_digits) {
  const auto elements = random_elements<float>(64 * 20 + 5);
  const auto want = squares_of(elements).sum.digits();
  std::mt19937_64 random(10);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::size_t> cuts{0, elements.size()};
    for (int cut = 0; cut < 4; ++cut) {
      cuts.push_back(random() % 21 * kGranule);
    }
    std::ranges::sort(cuts);
    std::vector<std::pair<std::size_t, std::size_t>> pieces;
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      pieces.emplace_back(cuts[i - 1], cuts[i]);
    }
    std::ranges::shuffle(pieces, random);
    SquareSum squares;
    for (const auto& [begin, end] : pieces) {
      squares.add(elements.data() + begin, Dtype::f32, static_cast<std::int64_t>(end - begin));
    }
    ASSERT_EQ(squares.sum.digits(), want);
  }
}

TEST(SquareSum, extremes_are_exact_and_non_finite_elements_are_seen) {
  on_every_target([] {
    const float largest = std::numeric_limits<float>::max();
    const float tiny = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(squares_of<float>({largest}).sum.value(), double{largest} * largest);
    EXPECT_EQ(squares_of<float>({tiny}).sum.value(), 0x1p-298);
    EXPECT_EQ(squares_of<double>({1e150}).sum.value(), 1e150 * 1e150);
    EXPECT_EQ(squares_of<float>({3.0f, -4.0f}).sum.value(), 25.0);
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      for (const std::size_t place : {0, 63, 64, 100, 130}) {
        std::vector<float> elements(131, 1.0f);
        elements[place] = bad;
        const SquareSum squares = squares_of(elements);
        EXPECT_FALSE(squares.all_finite) << place;
        const double lost = place < 128 ? 64 : 3;
        EXPECT_EQ(squares.sum.value(), 131 - lost) << place;
      }
    }
    EXPECT_FALSE(squares_of<double>({1e300}).all_finite);  // its square overflows
    EXPECT_FALSE(squares_of<Float16>({Float16{0x7c00}}).all_finite);
    EXPECT_FALSE(squares_of<Bfloat16>({Bfloat16{0x7fc0}}).all_finite);
  });
}

TEST(SquareSum, integers_and_negative_counts_break_an_invariant) {
  SquareSum squares;
  const std::int32_t value = 1;
  EXPECT_THROW(squares.add(&value, Dtype::i32, 1), InvariantBroken);
  EXPECT_THROW(squares.add(&value, Dtype::f32, -1), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::optim
