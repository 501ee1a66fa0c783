// What our Highway kernels share: elements of each dtype as lanes (16-bit floats with the bits of
// base/float16.h on every target), and the loop over them. A Highway -inl header: the source that
// includes it is compiled once per target.
#if defined(LOCKSTEP_BASE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_BASE_SIMD_INL_H_
#undef LOCKSTEP_BASE_SIMD_INL_H_
#else
#define LOCKSTEP_BASE_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How elements of one dtype become lanes of the type that arithmetic happens in, and back.
// D is the tag of those lanes; any number of lanes works, one included (tails).
template <class T>
struct PlainElement {
  using Lane = T;
  using Stored = T;

  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Stored* from) {
    return hn::LoadU(d, from);
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> value, D d, Stored* to) {
    hn::StoreU(value, d, to);
  }
};

struct Bfloat16Element {
  using Lane = float;
  using Stored = std::uint16_t;

  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Stored* from) {
    const hn::Rebind<std::uint16_t, D> narrow;
    const hn::RebindToUnsigned<D> wide;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(narrow, from))));
  }
  // The upper halves of the rounded bits, in u32 lanes.
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Round(hn::Vec<D> value, D) {
    const hn::RebindToUnsigned<D> u;
    const auto bits = hn::BitCast(u, value);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(u, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7fffu))));
    const auto quiet = hn::Or(upper, hn::Set(u, 0x0040u));
    return hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(value)), quiet, rounded);
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> value, D d, Stored* to) {
    const hn::Rebind<std::uint16_t, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, Round(value, d)), narrow, to);
  }
  // The nearest bf16, as a float.
  template <class D>
  static HWY_INLINE hn::Vec<D> RoundTrip(hn::Vec<D> value, D d) {
    return hn::BitCast(d, hn::ShiftLeft<16>(Round(value, d)));
  }
};

struct Float16Element {
  using Lane = float;
  using Stored = std::uint16_t;

  // u32 lanes holding f16 bits, as floats.
  template <class D>
  static HWY_INLINE hn::Vec<D> Widen(hn::Vec<hn::RebindToUnsigned<D>> bits, D d) {
    const hn::RebindToUnsigned<D> u;
    const hn::RebindToSigned<D> i;
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(u, 0x8000u)));
    const auto magnitude = hn::And(bits, hn::Set(u, 0x7fffu));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(u, 0x38000000u));
    const auto special = hn::Or(shifted, hn::Set(u, 0x7f800000u));
    // Exact: at most 10 significant bits.
    const auto denormal =
        hn::BitCast(u, hn::Mul(hn::ConvertTo(d, hn::BitCast(i, magnitude)), hn::Set(d, 0x1p-24f)));
    const auto finite = hn::IfThenElse(hn::Gt(hn::Set(u, 0x0400u), magnitude), denormal, normal);
    const auto value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(u, 0x7bffu)), special, finite);
    return hn::BitCast(d, hn::Or(sign, value));
  }
  // The nearest f16's bits, in u32 lanes.
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Round(hn::Vec<D> value, D d) {
    const hn::RebindToUnsigned<D> u;
    const auto bits = hn::BitCast(u, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 0x8000u));
    const auto magnitude = hn::And(bits, hn::Set(u, 0x7fffffffu));
    const auto rebiased = hn::Sub(magnitude, hn::Set(u, 0x38000000u));
    const auto odd = hn::And(hn::ShiftRight<13>(rebiased), hn::Set(u, 1u));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebiased, hn::Add(odd, hn::Set(u, 0xfffu))));
    // Below 2^-14 one unit of f16 is 2^-24, which is one unit of fp32 in [0.5, 1): this addition
    // rounds to nearest even at the right bit.
    const auto half = hn::Set(d, 0.5f);
    const auto denormal =
        hn::Sub(hn::BitCast(u, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(u, half));
    const auto finite =
        hn::IfThenElse(hn::Gt(hn::Set(u, 0x38800000u), magnitude), denormal, normal);
    const auto infinity = hn::Set(u, 0x7c00u);
    const auto bounded =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(u, 0x477fefffu)), infinity, finite);
    const auto result =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(u, 0x7f800000u)), hn::Set(u, 0x7e00u), bounded);
    return hn::Or(sign, result);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Stored* from) {
    const hn::Rebind<std::uint16_t, D> narrow;
    const hn::RebindToUnsigned<D> wide;
    return Widen(hn::PromoteTo(wide, hn::LoadU(narrow, from)), d);
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> value, D d, Stored* to) {
    const hn::Rebind<std::uint16_t, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, Round(value, d)), narrow, to);
  }
  // The nearest f16, as a float.
  template <class D>
  static HWY_INLINE hn::Vec<D> RoundTrip(hn::Vec<D> value, D d) {
    return Widen(Round(value, d), d);
  }
};

// Which NaN an addition of two yields hangs on the operands' order, which compilers may swap; one
// fixed NaN keeps the promise of equal bits.
template <class D>
HWY_INLINE hn::Vec<D> CanonicalNan(hn::Vec<D> value, D d) {
  using Lane = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> u;
  if constexpr (sizeof(Lane) == 8) {
    const auto nan = hn::BitCast(d, hn::Set(u, std::uint64_t{0x7ff8000000000000}));
    return hn::IfThenElse(hn::IsNaN(value), nan, value);
  } else {
    const auto nan = hn::BitCast(d, hn::Set(u, std::uint32_t{0x7fc00000}));
    return hn::IfThenElse(hn::IsNaN(value), nan, value);
  }
}

// Calls body(tag, i) for full vectors of [0, count), then lane by lane for the tail.
template <class Lane, class Body>
HWY_INLINE void OverVectors(std::size_t count, const Body& body) {
  const hn::ScalableTag<Lane> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body(d, i);
  }
  const hn::CappedTag<Lane, 1> one;
  for (; i < count; ++i) {
    body(one, i);
  }
}

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_BASE_SIMD_INL_H_
