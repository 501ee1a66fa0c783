#include "optim/norm.h"

#include "base/float_environment.h"
#include "base/invariant.h"
#include "base/range.h"

#include <algorithm>
#include <bit>
#include <cmath>

// Highway compiles the rest of this file once per target; the order of these lines is its rule.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "base/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = lockstep::HWY_NAMESPACE;

// Squares add in this many lanes whatever the vector's width; wider vectors would change the order.
constexpr std::size_t kLanes = 8;
// Vectors of a length known here: the whole of them, or what every scalable target has at least.
using Tag = hn::CappedTag<double, HWY_HAVE_SCALABLE ? 2 : kLanes>;
using Sums = hn::Vec<Tag>;
constexpr std::size_t kVector = hn::MaxLanes(Tag());

template <class Element, class D>
HWY_INLINE hn::Vec<D> LoadAsDouble(D d, const typename Element::Stored* from) {
  if constexpr (std::is_same_v<typename Element::Lane, double>) {
    return Element::Load(d, from);
  } else {
    return hn::PromoteTo(d, Element::Load(hn::Rebind<float, D>(), from));
  }
}

// Lanes j, j + 1, … of the kLanes running sums: lane j adds the squares of elements j, j + 8, ….
template <class Element>
HWY_INLINE Sums SquareLanes(const typename Element::Stored* granule, std::size_t j) {
  const Tag d;
  auto sum = hn::Zero(d);
  for (std::size_t i = j; i < kGranule; i += kLanes) {
    const auto value = LoadAsDouble<Element>(d, granule + i);
    sum = hn::Add(sum, hn::Mul(value, value));
  }
  return sum;
}

// The upper half of the lanes is added onto the lower until one vector is left …
template <class Element, std::size_t kFirst = 0, std::size_t kStride = kVector>
HWY_INLINE Sums FoldVectors(const typename Element::Stored* granule) {
  if constexpr (kStride == kLanes) {
    return SquareLanes<Element>(granule, kFirst);
  } else {
    return hn::Add(FoldVectors<Element, kFirst, 2 * kStride>(granule),
                   FoldVectors<Element, kFirst + kStride, 2 * kStride>(granule));
  }
}

// … and then inside it.
template <class D>
HWY_INLINE double FoldLanes(D d, hn::Vec<D> sums) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return FoldLanes(half, hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)));
  }
#endif
  (void)d;
  return hn::GetLane(sums);
}

// One loop for squares and digits: the processor overlaps them.
template <class Element>
void AddGranules(const void* values, std::size_t granules, SquareSum& total) {
  const auto* const elements = static_cast<const typename Element::Stored*>(values);
  for (std::size_t i = 0; i < granules; ++i) {
    const double squares = FoldLanes(Tag(), FoldVectors<Element>(elements + i * kGranule));
    if (std::isfinite(squares)) {
      total.sum.add(squares);
    } else {
      total.all_finite = false;
    }
  }
}

void AddSquares(const void* values, Dtype dtype, std::size_t granules, SquareSum& total) {
  switch (dtype) {
    case Dtype::f32:
      return AddGranules<simd::PlainElement<float>>(values, granules, total);
    case Dtype::f64:
      return AddGranules<simd::PlainElement<double>>(values, granules, total);
    case Dtype::bf16:
      return AddGranules<simd::Bfloat16Element>(values, granules, total);
    case Dtype::f16:
      return AddGranules<simd::Float16Element>(values, granules, total);
    default:
      return;
  }
}

}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

// Bit 0 of digit 0 stands for the smallest denormal, 2^kUnitExponent.
constexpr int kUnitExponent = -1074;

}  // namespace

HWY_EXPORT(AddSquares);

void ExactSum::add(const ExactSum& other) {
  for (int i = 0; i < kDigits; ++i) {
    digits_[i] += other.digits_[i];
  }
  added_ += other.added_;
  if (added_ >= kMaxAdded) {
    normalise();
  }
}

void ExactSum::normalise() {
  std::int64_t carry = 0;
  for (std::int64_t& digit : digits_) {
    digit += carry;
    carry = digit >> kDigitBits;
    digit &= static_cast<std::int64_t>(kDigitMask);
  }
  LOCKSTEP_INVARIANT(carry, ==, 0);
  added_ = 1;  // digits below 2^32, as after one addition
}

std::array<std::int64_t, ExactSum::kDigits> ExactSum::digits() const {
  ExactSum carried = *this;
  carried.normalise();
  return carried.digits_;
}

ExactSum ExactSum::from_digits(std::span<const std::int64_t> digits) {
  LOCKSTEP_INVARIANT(digits.size(), ==, static_cast<std::size_t>(kDigits));
  ExactSum sum;
  std::ranges::copy(digits, sum.digits_.begin());
  sum.normalise();
  return sum;
}

double ExactSum::value() const {
  const auto carried = digits();
  int top = kDigits - 1;
  while (top > 0 && carried[top] == 0) {
    --top;
  }
  // The upper 64 bits of three digits, with a one below for whatever lies further down: the
  // conversion to double then rounds as if it saw all of them.
  const auto digit = [&](int i) { return i < 0 ? 0 : static_cast<std::uint64_t>(carried[i]); };
  const std::uint64_t upper = digit(top) << kDigitBits | digit(top - 1);
  const int shift = upper == 0 ? 0 : std::countl_zero(upper);
  const std::uint64_t next = digit(top - 2) << kDigitBits | digit(top - 3);
  std::uint64_t window = shift == 0 ? upper : upper << shift | next >> (64 - shift);
  bool rest = (next << shift) != 0;
  for (int i = top - 4; i >= 0 && !rest; --i) {
    rest = carried[i] != 0;
  }
  window |= rest ? 1u : 0u;
  const base::DefaultFloatEnvironment environment;
  const int exponent = kUnitExponent + kDigitBits * (top - 1) - shift;
  return std::ldexp(static_cast<double>(window), exponent);
}

void ExactSum::clear() { *this = ExactSum(); }

void SquareSum::add(const void* values, Dtype dtype, std::int64_t count) {
  LOCKSTEP_INVARIANT(count, >=, 0);
  LOCKSTEP_INVARIANT(is_floating(dtype), ==, true);
  const base::DefaultFloatEnvironment environment;
  const auto add_squares = HWY_DYNAMIC_DISPATCH(AddSquares);
  const std::int64_t granules = count / kGranule;
  add_squares(values, dtype, static_cast<std::size_t>(granules), *this);
  if (const std::int64_t rest = count % kGranule; rest != 0) {
    const auto* const from = static_cast<const std::byte*>(values);
    alignas(double) std::array<std::byte, kGranule * sizeof(double)> padded{};  // zeros add nothing
    std::copy_n(from + granules * kGranule * size_of(dtype), rest * size_of(dtype), padded.begin());
    add_squares(padded.data(), dtype, 1, *this);
  }
}

}  // namespace lockstep::optim
#endif  // HWY_ONCE
