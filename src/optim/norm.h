// The squared norm of a gradient, exactly the same whatever the order and the sharding.
//
// Squares are added in fp64 inside granules of 64 elements, in fixed lanes; each granule's sum is
// then added into an integer accumulator without rounding (a superaccumulator: base-2³² digits in
// int64, Kulisch 1977). Granules never cross a shard, so any split of the elements over ranks,
// buckets and chunks gives the same digits, combined by one integer all_reduce.
#pragma once

#include "lockstep/dtype.h"

#include <array>
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
  void normalise();
  std::array<std::int64_t, kDigits> digits_{};
  std::int64_t added_ = 0;
};

// What one pass over elements yields.
struct SquareSum {
  ExactSum sum;            // of the finite granules
  bool all_finite = true;  // false once any element was inf or NaN (or a square overflowed)

  // Adds `count` elements; the first lies on a granule boundary of its flat parameter (only the
  // last granule of a call may be short, and then no later call continues it).
  void add(const void* values, Dtype dtype, std::int64_t count);
};

}  // namespace lockstep::optim
