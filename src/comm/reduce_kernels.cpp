#include "comm/reduce_kernels.h"

#include "base/float_environment.h"
#include "base/range.h"

#include <algorithm>
#include <array>

// Highway compiles the rest of this file once per target; the order of these lines is its rule.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "base/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace lockstep::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = lockstep::HWY_NAMESPACE;

// Partial sums of more leaves than fit registers rest in blocks of this many lanes, inside L1.
constexpr std::size_t kBlock = 256;
// More leaves are added block by block, two at a time.
constexpr std::size_t kLeavesInRegisters = 4;

struct Add {
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D, hn::Vec<D> left, hn::Vec<D> right) {
    return hn::Add(left, right);
  }
};

// The right one where it is larger (smaller) or NaN, else the left one: equal values, zeros of
// either sign among them, keep the earlier source's bits.
template <bool kLargest>
struct Extreme {
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D, hn::Vec<D> left, hn::Vec<D> right) {
    const auto further = kLargest ? hn::Lt(left, right) : hn::Lt(right, left);
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::Or(further, hn::IsNaN(right)), right, left);
    } else {
      return hn::IfThenElse(further, right, left);
    }
  }
};

// sum(0, kLeaves) of the sources' elements at i, in registers.
template <class Element, class Op, std::size_t kLeaves, class D>
HWY_INLINE hn::Vec<D> Tree(D d, const typename Element::Stored* const* sources, std::size_t i) {
  if constexpr (kLeaves == 1) {
    return Element::Load(d, sources[0] + i);
  } else {
    constexpr std::size_t kLeft = tree_split(kLeaves);
    return Op::Combine(d, Tree<Element, Op, kLeft>(d, sources, i),
                       Tree<Element, Op, kLeaves - kLeft>(d, sources + kLeft, i));
  }
}

// What happens to a sum on its way to memory: one multiplication, one rounding, the stores.
template <class Element>
class Output {
 public:
  using Lane = typename Element::Lane;
  using Stored = typename Element::Stored;

  explicit Output(const ReduceTask& task)
      : destinations_(task.destinations),
        scaled_(task.scale.has_value()),
        factor_(static_cast<Lane>(task.scale.value_or(1.0))),
        round_to_(task.round_to.value_or(task.dtype)),
        widen_(task.widen),
        narrow_to_(task.narrow_to.value_or(task.dtype)) {}

  template <class D>
  HWY_INLINE void Write(hn::Vec<D> sum, D d, std::size_t i) const {
    if constexpr (hwy::IsFloat<Lane>()) {
      sum = simd::CanonicalNan(scaled_ ? hn::Mul(sum, hn::Set(d, factor_)) : sum, d);
    }
    if constexpr (std::is_same_v<Stored, float>) {
      if (round_to_ == Dtype::bf16) {
        sum = simd::Bfloat16Element::RoundTrip(sum, d);
      } else if (round_to_ == Dtype::f16) {
        sum = simd::Float16Element::RoundTrip(sum, d);
      }
      if (narrow_to_ == Dtype::bf16) {
        return StoreAll<simd::Bfloat16Element>(sum, d, i);
      }
      if (narrow_to_ == Dtype::f16) {
        return StoreAll<simd::Float16Element>(sum, d, i);
      }
    }
    if constexpr (!std::is_same_v<Stored, Lane>) {
      if (widen_) {
        return StoreAll<simd::PlainElement<Lane>>(sum, d, i);
      }
    }
    StoreAll<Element>(sum, d, i);
  }

 private:
  template <class As, class D>
  HWY_INLINE void StoreAll(hn::Vec<D> sum, D d, std::size_t i) const {
    for (void* const destination : destinations_) {
      As::Store(sum, d, static_cast<typename As::Stored*>(destination) + i);
    }
  }

  std::span<void* const> destinations_;
  bool scaled_;
  Lane factor_;
  Dtype round_to_;
  bool widen_;
  Dtype narrow_to_;
};

// The whole task in one pass, for as many leaves as registers hold.
template <class Element, class Op, std::size_t kLeaves>
void ReduceInRegisters(const ReduceTask& task) {
  using Stored = typename Element::Stored;
  // A copy, because the compiler must assume that stores change what the task points to.
  std::array<const Stored*, kLeaves> sources;
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    sources[leaf] = static_cast<const Stored*>(task.sources[leaf]);
  }
  const Output<Element> output(task);
  simd::OverVectors<typename Element::Lane>(
      static_cast<std::size_t>(task.count), [&](auto d, std::size_t i) HWY_ATTR {
        output.Write(Tree<Element, Op, kLeaves>(d, sources.data(), i), d, i);
      });
}

template <class Element, class Op, std::size_t kLeaves>
void SumInRegisters(std::span<const void* const> sources, std::size_t begin, std::size_t count,
                    typename Element::Lane* sum) {
  std::array<const typename Element::Stored*, kLeaves> from;
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    from[leaf] = static_cast<const typename Element::Stored*>(sources[leaf]) + begin;
  }
  simd::OverVectors<typename Element::Lane>(count, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(Tree<Element, Op, kLeaves>(d, from.data(), i), d, sum + i);
  });
}

// The tree over all sources for elements [begin, begin + count), count ≤ kBlock, into `sum`.
template <class Element, class Op>
void SumBlock(std::span<const void* const> sources, std::size_t begin, std::size_t count,
              typename Element::Lane* sum) {
  using Lane = typename Element::Lane;
  if (sources.size() <= 2) {
    return sources.size() == 1 ? SumInRegisters<Element, Op, 1>(sources, begin, count, sum)
                               : SumInRegisters<Element, Op, 2>(sources, begin, count, sum);
  }
  const auto mid = static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(sources.size())));
  HWY_ALIGN Lane right[kBlock];
  SumBlock<Element, Op>(sources.first(mid), begin, count, sum);
  SumBlock<Element, Op>(sources.subspan(mid), begin, count, right);
  simd::OverVectors<Lane>(count, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(Op::Combine(d, hn::LoadU(d, sum + i), hn::LoadU(d, right + i)), d, sum + i);
  });
}

// Block by block, for any number of leaves.
template <class Element, class Op>
void ReduceInBlocks(const ReduceTask& task) {
  using Lane = typename Element::Lane;
  const Output<Element> output(task);
  const auto count = static_cast<std::size_t>(task.count);
  HWY_ALIGN Lane sum[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    SumBlock<Element, Op>(task.sources, begin, length, sum);
    simd::OverVectors<Lane>(length, [&](auto d, std::size_t i) HWY_ATTR {
      output.Write(hn::LoadU(d, sum + i), d, begin + i);
    });
  }
}

// Sums of few ranks are what gradients are made of; all else shares the path in blocks.
template <class Element>
void ReduceSum(const ReduceTask& task) {
  switch (task.sources.size()) {
    case 2:
      return ReduceInRegisters<Element, Add, 2>(task);
    case kLeavesInRegisters:
      return ReduceInRegisters<Element, Add, kLeavesInRegisters>(task);
    default:
      return ReduceInBlocks<Element, Add>(task);
  }
}

// Summed and Ordered differ for integers: sums wrap, so they are unsigned; order needs the sign.
template <class Summed, class Ordered = Summed>
void ReduceElements(const ReduceTask& task) {
  switch (task.op) {
    case ReduceOp::sum:
    case ReduceOp::mean:
      return ReduceSum<Summed>(task);
    case ReduceOp::max:
      return ReduceInBlocks<Ordered, Extreme<true>>(task);
    case ReduceOp::min:
      return ReduceInBlocks<Ordered, Extreme<false>>(task);
  }
}

void Reduce(const ReduceTask& task) {
  using simd::PlainElement;
  switch (task.dtype) {
    case Dtype::f32:
      return ReduceElements<PlainElement<float>>(task);
    case Dtype::f64:
      return ReduceElements<PlainElement<double>>(task);
    case Dtype::bf16:
      return ReduceElements<simd::Bfloat16Element>(task);
    case Dtype::f16:
      return ReduceElements<simd::Float16Element>(task);
    case Dtype::i32:
      return ReduceElements<PlainElement<std::uint32_t>, PlainElement<std::int32_t>>(task);
    case Dtype::i64:
      return ReduceElements<PlainElement<std::uint64_t>, PlainElement<std::int64_t>>(task);
    case Dtype::u8:
      return ReduceElements<PlainElement<std::uint8_t>>(task);
  }
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace lockstep::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::comm {

HWY_EXPORT(Reduce);
HWY_EXPORT(TargetName);

void reduce(const ReduceTask& task) {
  LOCKSTEP_INVARIANT(task.sources.size(), >=, 1u);
  LOCKSTEP_INVARIANT(task.count, >=, 0);
  LOCKSTEP_INVARIANT(task.scale.has_value(), <=, is_floating(task.dtype));
  if (task.round_to) {
    LOCKSTEP_INVARIANT(static_cast<int>(task.dtype), ==, static_cast<int>(Dtype::f32));
    LOCKSTEP_INVARIANT(size_of(*task.round_to), ==, 2);
  }
  if (task.narrow_to) {
    LOCKSTEP_INVARIANT(static_cast<int>(task.dtype), ==, static_cast<int>(Dtype::f32));
    LOCKSTEP_INVARIANT(size_of(*task.narrow_to), ==, 2);
  }
  LOCKSTEP_INVARIANT(task.widen, <=, is_floating(task.dtype) && size_of(task.dtype) == 2);
  const base::DefaultFloatEnvironment environment;
  HWY_DYNAMIC_DISPATCH(Reduce)(task);
}

const char* simd_target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace lockstep::comm
#endif  // HWY_ONCE
