#include "optim/kernels.h"

#include "base/float_environment.h"
#include "base/invariant.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

// Highway compiles the rest of this file once per target; the order of these lines is its rule.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "base/simd-inl.h"
#include "optim/update_dtypes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = lockstep::HWY_NAMESPACE;
using simd::Bfloat16Element;
using simd::Float16Element;
using simd::PlainElement;

// fp32 in memory, fp64 in lanes.
struct WidenedElement {
  using Lane = double;
  using Stored = float;

  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Stored* from) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> value, D, Stored* to) {
    const hn::Rebind<float, D> narrow;
    if constexpr (hn::MaxLanes(D()) == 1) {
      *to = static_cast<float>(hn::GetLane(value));  // Highway's scalar target saturates infinity
    } else {
      hn::StoreU(hn::DemoteTo(narrow, value), narrow, to);
    }
  }
};

template <class Element>
auto* ElementsOf(Vector vector) {
  return static_cast<typename Element::Stored*>(vector.data);
}
template <class Element>
auto* ElementsOf(ConstVector vector) {
  return static_cast<const typename Element::Stored*>(vector.data);
}

// Past the cache: `destination` is neither read to be overwritten nor kept.
void CopyStreamed(std::byte* destination, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const hn::ScalableTag<std::uint8_t> d;
  auto* const to = reinterpret_cast<std::uint8_t*>(destination);
  const auto* const from = reinterpret_cast<const std::uint8_t*>(source);
  const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to)) % kLine);
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + hn::Lanes(d) <= bytes; i += hn::Lanes(d)) {
    hn::Stream(hn::LoadU(d, from + i), d, to + i);
  }
  std::memcpy(to + i, from + i, bytes - i);
  hwy::FlushStream();  // whoever is told that the copy is there sees it
}

template <class To, class From>
void ConvertElements(Vector destination, ConstVector source, std::size_t count) {
  auto* const to = ElementsOf<To>(destination);
  const auto* const from = ElementsOf<From>(source);
  simd::OverVectors<typename From::Lane>(count, [=](auto d, std::size_t i) HWY_ATTR {
    To::Store(From::Load(d, from + i), d, to + i);
  });
}

// False where the pair of dtypes is none that convert() knows.
bool Convert(Vector destination, ConstVector source, std::size_t count) {
  const Dtype to = destination.dtype;
  const Dtype from = source.dtype;
  if (to == Dtype::f32 && from == Dtype::bf16) {
    ConvertElements<PlainElement<float>, Bfloat16Element>(destination, source, count);
  } else if (to == Dtype::f32 && from == Dtype::f16) {
    ConvertElements<PlainElement<float>, Float16Element>(destination, source, count);
  } else if (to == Dtype::bf16 && from == Dtype::f32) {
    ConvertElements<Bfloat16Element, PlainElement<float>>(destination, source, count);
  } else if (to == Dtype::f16 && from == Dtype::f32) {
    ConvertElements<Float16Element, PlainElement<float>>(destination, source, count);
  } else if (to == Dtype::f64 && from == Dtype::f32) {
    ConvertElements<PlainElement<double>, WidenedElement>(destination, source, count);
  } else if (to == Dtype::f32 && from == Dtype::f64) {
    ConvertElements<WidenedElement, PlainElement<double>>(destination, source, count);
  } else {
    return false;
  }
  return true;
}

template <class Left, class Right>
void AddElements(Vector sum, ConstVector left, ConstVector right, std::size_t count) {
  auto* const to = ElementsOf<Left>(sum);
  const auto* const a = ElementsOf<Left>(left);
  const auto* const b = ElementsOf<Right>(right);
  simd::OverVectors<typename Left::Lane>(count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto added = hn::Add(Left::Load(d, a + i), Right::Load(d, b + i));
    Left::Store(simd::CanonicalNan(added, d), d, to + i);
  });
}

// False where the pair of dtypes is none that add() knows.
bool Add(Vector sum, ConstVector left, ConstVector right, std::size_t count) {
  if (left.dtype == Dtype::f32 && right.dtype == Dtype::f32) {
    AddElements<PlainElement<float>, PlainElement<float>>(sum, left, right, count);
  } else if (left.dtype == Dtype::f32 && right.dtype == Dtype::bf16) {
    AddElements<PlainElement<float>, Bfloat16Element>(sum, left, right, count);
  } else if (left.dtype == Dtype::f32 && right.dtype == Dtype::f16) {
    AddElements<PlainElement<float>, Float16Element>(sum, left, right, count);
  } else if (left.dtype == Dtype::f64 && right.dtype == Dtype::f64) {
    AddElements<PlainElement<double>, PlainElement<double>>(sum, left, right, count);
  } else {
    return false;
  }
  return true;
}

// Rounded: the 16-bit element whose precision the result keeps, or Element itself.
template <class Element, class Rounded = Element>
void ScaleElements(Vector values, double factor, std::size_t count) {
  using Lane = typename Element::Lane;
  auto* const data = ElementsOf<Element>(values);
  const Lane by = static_cast<Lane>(factor);
  simd::OverVectors<Lane>(count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto product = hn::Mul(Element::Load(d, data + i), hn::Set(d, by));
    const auto value = simd::CanonicalNan(product, d);
    if constexpr (std::is_same_v<Element, Rounded>) {
      Element::Store(value, d, data + i);
    } else {
      Element::Store(Rounded::RoundTrip(value, d), d, data + i);
    }
  });
}

void Scale(Vector values, double factor, Dtype round_to, std::size_t count) {
  switch (values.dtype) {
    case Dtype::f64:
      return ScaleElements<PlainElement<double>>(values, factor, count);
    case Dtype::bf16:
      return ScaleElements<Bfloat16Element>(values, factor, count);
    case Dtype::f16:
      return ScaleElements<Float16Element>(values, factor, count);
    default:
      break;
  }
  switch (round_to) {
    case Dtype::bf16:
      return ScaleElements<PlainElement<float>, Bfloat16Element>(values, factor, count);
    case Dtype::f16:
      return ScaleElements<PlainElement<float>, Float16Element>(values, factor, count);
    default:
      return ScaleElements<PlainElement<float>>(values, factor, count);
  }
}

// What one AdamW step multiplies with, computed in fp64 and rounded once to the lanes' type.
template <class Lane>
struct Coefficients {
  explicit Coefficients(const AdamWStep& step)
      : decay(static_cast<Lane>(1.0 - step.lr * step.weight_decay)),
        beta1(static_cast<Lane>(step.beta1)),
        rest1(static_cast<Lane>(1.0 - step.beta1)),
        beta2(static_cast<Lane>(step.beta2)),
        rest2(static_cast<Lane>(1.0 - step.beta2)),
        rate(static_cast<Lane>(step.lr /
                               (1.0 - std::pow(step.beta1, static_cast<double>(step.step))))),
        root(static_cast<Lane>(
            std::sqrt(1.0 - std::pow(step.beta2, static_cast<double>(step.step))))),
        eps(static_cast<Lane>(step.eps)),
        clip(static_cast<Lane>(step.clip)) {}

  Lane decay, beta1, rest1, beta2, rest2, rate, root, eps, clip;
};

// `weights` are what the step updates (a master or the parameter); with kCast they are also rounded
// into the bf16 `cast`.
template <class Weight, class Gradient, bool kCast>
void AdamWElements(const AdamWVectors& vectors, typename Weight::Lane* weights,
                   const AdamWStep& step, std::size_t count) {
  using Lane = typename Weight::Lane;
  const Coefficients<Lane> by(step);
  auto* const first = static_cast<Lane*>(vectors.first_moment);
  auto* const second = static_cast<Lane*>(vectors.second_moment);
  const auto* const gradient = ElementsOf<Gradient>(vectors.gradient);
  auto* const cast = static_cast<std::uint16_t*>(kCast ? vectors.parameter.data : nullptr);
  simd::OverVectors<Lane>(count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto g = hn::Mul(Gradient::Load(d, gradient + i), hn::Set(d, by.clip));
    const auto m = hn::Add(hn::Mul(hn::LoadU(d, first + i), hn::Set(d, by.beta1)),
                           hn::Mul(hn::Set(d, by.rest1), g));
    const auto v = hn::Add(hn::Mul(hn::LoadU(d, second + i), hn::Set(d, by.beta2)),
                           hn::Mul(hn::Mul(hn::Set(d, by.rest2), g), g));
    const auto denominator = hn::Add(hn::Div(hn::Sqrt(v), hn::Set(d, by.root)), hn::Set(d, by.eps));
    const auto decayed = hn::Mul(hn::LoadU(d, weights + i), hn::Set(d, by.decay));
    const auto weight = hn::Sub(decayed, hn::Div(hn::Mul(hn::Set(d, by.rate), m), denominator));
    hn::StoreU(m, d, first + i);
    hn::StoreU(v, d, second + i);
    hn::StoreU(weight, d, weights + i);
    if constexpr (kCast) {
      Bfloat16Element::Store(weight, d, cast + i);
    }
  });
}

// False where the dtypes are none that adamw() knows.
bool AdamW(const AdamWVectors& vectors, const AdamWStep& step, std::size_t count) {
  return OverUpdateDtypes(
      vectors, [&]<class Weight, class Gradient, bool kCast>(typename Weight::Lane* weights) {
        AdamWElements<Weight, Gradient, kCast>(vectors, weights, step, count);
      });
}

}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(CopyStreamed);
HWY_EXPORT(Convert);
HWY_EXPORT(Add);
HWY_EXPORT(Scale);
HWY_EXPORT(AdamW);

namespace {

std::size_t checked(std::int64_t count) {
  LOCKSTEP_INVARIANT(count, >=, 0);
  return static_cast<std::size_t>(count);
}

// Both dtypes are in the message of a pair that the kernels don't have.
void require_known(bool known, Dtype left, Dtype right) {
  if (!known) {
    throw InvariantBroken("no kernel for " + std::string(name_of(left)) + " with " +
                          std::string(name_of(right)) +
                          "; this is a bug in Lockstep, please report it");
  }
}

// Gradients on their way to where peers read them: large ones leave the cache before that anyway,
// and streaming saves reading the destination first. Two processes copying and then reducing 9 MB
// each took 0.96 ms with streaming and 1.25 without; 1 MB that lies in cache 0.12 against 0.05.
constexpr std::size_t kStreamedBytes = 2'000'000;

void copy(Vector destination, ConstVector source, std::size_t bytes) {
  if (bytes == 0 || destination.data == source.data) {
    return;
  }
  if (bytes < kStreamedBytes) {
    std::memcpy(destination.data, source.data, bytes);
    return;
  }
  HWY_DYNAMIC_DISPATCH(CopyStreamed)
  (static_cast<std::byte*>(destination.data), static_cast<const std::byte*>(source.data), bytes);
}

}  // namespace

void convert(Vector destination, ConstVector source, std::int64_t count) {
  const std::size_t elements = checked(count);
  if (destination.dtype == source.dtype) {
    return copy(destination, source, elements * static_cast<std::size_t>(size_of(source.dtype)));
  }
  const base::DefaultFloatEnvironment environment;
  require_known(HWY_DYNAMIC_DISPATCH(Convert)(destination, source, elements), source.dtype,
                destination.dtype);
}

void accumulate(Vector sum, ConstVector source, std::int64_t count) {
  add(sum, {sum.data, sum.dtype}, source, count);
}

void add(Vector sum, ConstVector left, ConstVector right, std::int64_t count) {
  require_known(sum.dtype == left.dtype, sum.dtype, left.dtype);
  const base::DefaultFloatEnvironment environment;
  require_known(HWY_DYNAMIC_DISPATCH(Add)(sum, left, right, checked(count)), left.dtype,
                right.dtype);
}

void scale(Vector values, double factor, std::optional<Dtype> round_to, std::int64_t count) {
  LOCKSTEP_INVARIANT(is_floating(values.dtype), ==, true);
  if (round_to) {
    LOCKSTEP_INVARIANT(size_of(*round_to), ==, 2);
    require_known(values.dtype == Dtype::f32, values.dtype, *round_to);
  }
  const base::DefaultFloatEnvironment environment;
  HWY_DYNAMIC_DISPATCH(Scale)(values, factor, round_to.value_or(values.dtype), checked(count));
}

void adamw(const AdamWVectors& vectors, const AdamWStep& step, std::int64_t count) {
  LOCKSTEP_INVARIANT(step.step, >=, 1);
  LOCKSTEP_INVARIANT(vectors.master != nullptr, ==, vectors.parameter.dtype == Dtype::bf16);
  const base::DefaultFloatEnvironment environment;
  require_known(HWY_DYNAMIC_DISPATCH(AdamW)(vectors, step, checked(count)), vectors.parameter.dtype,
                vectors.gradient.dtype);
}

}  // namespace lockstep::optim
#endif  // HWY_ONCE
