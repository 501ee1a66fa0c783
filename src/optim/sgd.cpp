#include "optim/sgd.h"

#include "base/float_environment.h"
#include "base/invariant.h"

#include <string>

// Highway compiles the rest of this file once per target; the order of these lines is its rule.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/sgd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "base/simd-inl.h"
#include "optim/update_dtypes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = lockstep::HWY_NAMESPACE;
using simd::Bfloat16Element;

// What one step multiplies with, computed in fp64 and rounded once to the lanes' type.
template <class Lane>
struct SgdCoefficients {
  explicit SgdCoefficients(const SgdStep& step)
      : decay(static_cast<Lane>(step.weight_decay)),
        keep(static_cast<Lane>(step.step == 1 ? 0.0 : step.momentum)),
        take(static_cast<Lane>(step.step == 1 ? 1.0 : 1.0 - step.dampening)),
        ahead(static_cast<Lane>(step.momentum)),
        rate(static_cast<Lane>(step.lr)),
        clip(static_cast<Lane>(step.clip)) {}

  Lane decay, keep, take, ahead, rate, clip;
};

enum class Direction { gradient, momentum, nesterov };

// `weights` are what the step updates (a master or the parameter); with kCast they are also rounded
// into the bf16 `cast`.
template <class Weight, class Gradient, bool kCast, Direction kDirection>
void SgdElements(const SgdVectors& vectors, typename Weight::Lane* weights, const SgdStep& step,
                 std::size_t count) {
  using Lane = typename Weight::Lane;
  const SgdCoefficients<Lane> by(step);
  auto* const momentum = static_cast<Lane*>(vectors.momentum);
  const auto* const gradient = static_cast<const typename Gradient::Stored*>(vectors.gradient.data);
  auto* const cast = static_cast<std::uint16_t*>(kCast ? vectors.parameter.data : nullptr);
  simd::OverVectors<Lane>(count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(d, weights + i);
    const auto g = hn::Mul(Gradient::Load(d, gradient + i), hn::Set(d, by.clip));
    const auto decayed = hn::Add(g, hn::Mul(hn::Set(d, by.decay), weight));
    auto direction = decayed;
    if constexpr (kDirection != Direction::gradient) {
      const auto b = hn::Add(hn::Mul(hn::LoadU(d, momentum + i), hn::Set(d, by.keep)),
                             hn::Mul(hn::Set(d, by.take), decayed));
      hn::StoreU(b, d, momentum + i);
      direction = kDirection == Direction::momentum
                      ? b
                      : hn::Add(decayed, hn::Mul(hn::Set(d, by.ahead), b));
    }
    const auto updated = hn::Sub(weight, hn::Mul(hn::Set(d, by.rate), direction));
    hn::StoreU(updated, d, weights + i);
    if constexpr (kCast) {
      Bfloat16Element::Store(updated, d, cast + i);
    }
  });
}

template <class Weight, class Gradient, bool kCast>
void SgdOf(const SgdVectors& vectors, typename Weight::Lane* weights, const SgdStep& step,
           std::size_t count) {
  if (step.momentum == 0.0) {
    SgdElements<Weight, Gradient, kCast, Direction::gradient>(vectors, weights, step, count);
  } else if (step.nesterov) {
    SgdElements<Weight, Gradient, kCast, Direction::nesterov>(vectors, weights, step, count);
  } else {
    SgdElements<Weight, Gradient, kCast, Direction::momentum>(vectors, weights, step, count);
  }
}

// False where the dtypes are none that sgd() knows.
bool Sgd(const SgdVectors& vectors, const SgdStep& step, std::size_t count) {
  return OverUpdateDtypes(
      vectors, [&]<class Weight, class Gradient, bool kCast>(typename Weight::Lane* weights) {
        SgdOf<Weight, Gradient, kCast>(vectors, weights, step, count);
      });
}

}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(Sgd);

void sgd(const SgdVectors& vectors, const SgdStep& step, std::int64_t count) {
  LOCKSTEP_INVARIANT(count, >=, 0);
  LOCKSTEP_INVARIANT(step.step, >=, 1);
  LOCKSTEP_INVARIANT(vectors.master != nullptr, ==, vectors.parameter.dtype == Dtype::bf16);
  LOCKSTEP_INVARIANT(step.momentum == 0.0 || vectors.momentum != nullptr, ==, true);
  const base::DefaultFloatEnvironment environment;
  if (!HWY_DYNAMIC_DISPATCH(Sgd)(vectors, step, static_cast<std::size_t>(count))) {
    throw InvariantBroken("no SGD kernel for " + std::string(name_of(vectors.parameter.dtype)) +
                          " with a gradient of " + std::string(name_of(vectors.gradient.dtype)) +
                          "; this is a bug in Lockstep, please report it");
  }
}

}  // namespace lockstep::optim
#endif  // HWY_ONCE
