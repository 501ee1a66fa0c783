// The squared norm of a gradient, exactly the same whatever the order and the sharding.
//
// Squares are added in fp64 inside granules of 64 elements, in fixed lanes; each granule's sum is
// then added into an integer accumulator without rounding (a superaccumulator: base-2³² digits in
// int64, Kulisch 1977). Granules never cross a shard, so any split of the elements over ranks,
// buckets and chunks gives the same digits, combined by one integer all_reduce.
#pragma once

#include "base/invariant.h"
#include "lockstep/dtype.h"

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace lockstep::optim {

class ExactSum {
 public:
  // The digits cover every finite double; sums of 2³⁰ values per digit fit before normalise().
  static constexpr int kDigits = 68;

  // Adds value exactly; value ≥ 0 and finite. A negative one breaks an invariant.
  void add(double value);
  // Adds another accumulator.
  void add(const ExactSum& other);
  // The digits, carried so that summing the digits of up to 2³⁰ ranks can't overflow: what travels.
  std::array<std::int64_t, kDigits> digits() const;
  // From summed digits.
  static ExactSum from_digits(std::span<const std::int64_t> digits);
  // The sum, rounded to nearest even once.
  double value() const;
  void clear();

 private:
  static constexpr int kDigitBits = 32;
  static constexpr std::uint64_t kDigitMask = 0xffffffffu;
  // Each addition adds less than 2^32 to a digit, so this many of them fit.
  static constexpr std::int64_t kMaxAdded = std::int64_t{1} << 30;

  void normalise();
  std::array<std::int64_t, kDigits> digits_{};
  std::int64_t added_ = 0;
};

// Inline: it runs once per granule, inside the SIMD loops.
inline void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // -0 is a zero too
  const std::uint64_t exponent = bits >> 52;  // the sign bit too: negative values fail below
  LOCKSTEP_INVARIANT(exponent, <, 0x7ffu);
  const std::uint64_t hidden = exponent != 0 ? std::uint64_t{1} << 52 : 0;
  const std::uint64_t significand = (bits & ((std::uint64_t{1} << 52) - 1)) | hidden;
  const std::uint64_t position = exponent - (hidden >> 52);
  const std::uint64_t digit = position / kDigitBits;
  const std::uint64_t shift = position % kDigitBits;
  const std::uint64_t low = (significand & kDigitMask) << shift;
  const std::uint64_t high = ((significand >> kDigitBits) << shift) + (low >> kDigitBits);
  digits_[digit] += static_cast<std::int64_t>(low & kDigitMask);
  digits_[digit + 1] += static_cast<std::int64_t>(high & kDigitMask);
  digits_[digit + 2] += static_cast<std::int64_t>(high >> kDigitBits);
  if (++added_ >= kMaxAdded) {
    normalise();
  }
}

// What one pass over elements yields.
struct SquareSum {
  ExactSum sum;            // of the finite granules
  bool all_finite = true;  // false once any element was inf or NaN (or a square overflowed)

  // Adds `count` elements; the first lies on a granule boundary of its flat parameter (only the
  // last granule of a call may be short, and then no later call continues it).
  void add(const void* values, Dtype dtype, std::int64_t count);
};

}  // namespace lockstep::optim
