#include "comm/reduce_kernels.h"

#include "base/float16.h"
#include "base/guarded.h"
#include "base/range.h"
#include "base/simd_targets.h"

#include <gtest/gtest.h>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

namespace lockstep::comm {
namespace {

using test::first_difference;
using test::Guarded;
using test::on_every_target;

constexpr std::size_t kMaxLanes = 64;  // bytes of the widest vector: lanes of u8

// The type that elements add in.
template <class T>
struct LaneOf {
  using type = T;
};
template <>
struct LaneOf<Bfloat16> {
  using type = float;
};
template <>
struct LaneOf<Float16> {
  using type = float;
};
template <class T>
using Lane = typename LaneOf<T>::type;

template <class T>
Lane<T> widen(T value) {
  if constexpr (std::is_same_v<T, Bfloat16> || std::is_same_v<T, Float16>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T>
T narrow(Lane<T> value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return value;
  }
}

template <class L>
L combine(ReduceOp op, L left, L right) {
  if (op == ReduceOp::max || op == ReduceOp::min) {
    const bool further = op == ReduceOp::max ? left < right : right < left;
    return further || right != right ? right : left;
  }
  if constexpr (std::is_integral_v<L>) {
    using Wrapping = std::make_unsigned_t<L>;
    return static_cast<L>(
        static_cast<Wrapping>(static_cast<Wrapping>(left) + static_cast<Wrapping>(right)));
  } else {
    return left + right;
  }
}

// The oracle: the documented tree, one element at a time.
template <class T>
Lane<T> tree(const std::vector<Guarded<T>>& sources, ReduceOp op, std::size_t lo, std::size_t hi,
             std::size_t i) {
  if (hi - lo == 1) {
    return widen(sources[lo][i]);
  }
  std::size_t mid = 1;
  while (mid * 2 < hi - lo) {
    mid *= 2;
  }
  return combine(op, tree(sources, op, lo, lo + mid, i), tree(sources, op, lo + mid, hi, i));
}

struct Finish {
  std::optional<double> scale = {};
  std::optional<Dtype> round_to = {};
};

template <class T>
T expected(const std::vector<Guarded<T>>& sources, ReduceOp op, const Finish& finish,
           std::size_t i) {
  Lane<T> value = tree(sources, op, 0, sources.size(), i);
  if constexpr (std::is_floating_point_v<Lane<T>>) {
    if (finish.scale) {
      value *= static_cast<Lane<T>>(*finish.scale);
    }
    if (std::isnan(value)) {
      value = std::numeric_limits<Lane<T>>::quiet_NaN();
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (finish.round_to == Dtype::bf16) {
      value = to_float(to_bfloat16(value));
    } else if (finish.round_to == Dtype::f16) {
      value = to_float(to_float16(value));
    }
  }
  return narrow<T>(value);
}

// Values whose sums round, and, one time in eight, a special bit pattern.
template <class T>
class Values {
 public:
  T next() {
    const std::uint64_t bits = random_();
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(bits);
    } else {
      if (bits % 8 == 0) {
        return special(bits >> 8);
      }
      const double magnitude = std::ldexp(1.0 + static_cast<double>(bits >> 40) * 0x1p-24,
                                          static_cast<int>(bits >> 8 & 7) - 4);
      return narrow<T>(static_cast<Lane<T>>((bits & 8) != 0 ? magnitude : -magnitude));
    }
  }

 private:
  T special(std::uint64_t bits) const {
    using Limits = std::numeric_limits<Lane<T>>;
    const Lane<T> values[] = {0,
                              -Lane<T>{0},
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              Limits::max(),
                              Limits::lowest(),
                              Limits::min(),
                              Limits::denorm_min(),
                              -Limits::denorm_min(),
                              Limits::min() * Lane<T>{0.75},
                              Lane<T>{65519.99f},
                              Lane<T>{0x1p-24f},
                              Lane<T>{0x1.8p-25f},
                              Lane<T>{1e8f}};
    return narrow<T>(values[bits % std::size(values)]);
  }
  std::mt19937_64 random_{20240607};
};

template <class T>
std::vector<Guarded<T>> make_sources(std::size_t ranks, std::size_t count, std::size_t shift) {
  static Values<T> values;
  std::vector<Guarded<T>> sources;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    sources.emplace_back(count, (rank * shift) % 5);
    for (std::size_t i = 0; i < count; ++i) {
      sources.back()[i] = values.next();
    }
  }
  return sources;
}

template <class T>
void check_once(const std::vector<Guarded<T>>& sources, std::size_t copies, ReduceOp op,
                const Finish& finish) {
  const std::size_t count = sources[0].size();
  std::vector<Guarded<T>> outputs;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const auto& source : sources) {
    from.push_back(source.data());
  }
  for (std::size_t copy = 0; copy < copies; ++copy) {
    outputs.emplace_back(count, copy % 3);
  }
  for (auto& output : outputs) {
    to.push_back(output.data());
  }
  reduce({.sources = from,
          .destinations = to,
          .count = static_cast<std::int64_t>(count),
          .dtype = DtypeOf<T>::value,
          .op = op,
          .scale = finish.scale,
          .round_to = finish.round_to});
  std::vector<T> want(count);
  for (std::size_t i = 0; i < count; ++i) {
    want[i] = expected(sources, op, finish, i);
  }
  for (const auto& output : outputs) {
    ASSERT_EQ(first_difference(output.data(), want.data(), count), count);
    ASSERT_TRUE(output.guards_intact());
  }
  for (const auto& source : sources) {
    ASSERT_TRUE(source.guards_intact());
  }
}

template <class T>
std::vector<Finish> finishes() {
  std::vector<Finish> all{{}};
  if constexpr (std::is_floating_point_v<Lane<T>>) {
    all.push_back({.scale = 1.0 / 3.0});
  }
  if constexpr (std::is_same_v<T, float>) {
    all.push_back({.round_to = Dtype::bf16});
    all.push_back({.scale = 0.2, .round_to = Dtype::bf16});
    all.push_back({.round_to = Dtype::f16});
    all.push_back({.scale = 1.0 / 7.0, .round_to = Dtype::f16});
  }
  return all;
}

template <class T>
class ReduceKernels : public ::testing::Test {};

using ElementTypes =
    ::testing::Types<float, double, Bfloat16, Float16, std::int32_t, std::int64_t, std::uint8_t>;
class ElementNames {
 public:
  template <class T>
  static std::string GetName(int) {
    return std::string(name_of(DtypeOf<T>::value));
  }
};
TYPED_TEST_SUITE(ReduceKernels, ElementTypes, ElementNames);

TYPED_TEST(ReduceKernels, equal_the_scalar_tree_for_every_count_and_tail) {
  on_every_target([] {
    const std::size_t lanes = kMaxLanes / sizeof(Lane<TypeParam>);
    for (const std::size_t ranks : {1, 2, 3, 4, 7, 8, 16}) {
      for (std::size_t count = 0; count < 2 * lanes + 3; ++count) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements");
        const auto sources = make_sources<TypeParam>(ranks, count, 1);
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max, ReduceOp::min}) {
          ASSERT_NO_FATAL_FAILURE(check_once(sources, 1, op, {}));
        }
      }
    }
  });
}

TYPED_TEST(ReduceKernels, equal_the_scalar_tree_across_blocks_scales_and_destinations) {
  on_every_target([] {
    for (const std::size_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 33}) {
      for (const std::size_t count : {255, 256, 257, 1000}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements");
        const auto sources = make_sources<TypeParam>(ranks, count, count % 3);
        for (const Finish& finish : finishes<TypeParam>()) {
          ASSERT_NO_FATAL_FAILURE(check_once(sources, 1 + ranks % 3, ReduceOp::sum, finish));
        }
        ASSERT_NO_FATAL_FAILURE(check_once(sources, ranks, ReduceOp::max, {}));
      }
    }
  });
}

TYPED_TEST(ReduceKernels, writes_over_its_sources) {
  on_every_target([] {
    for (const std::size_t ranks : {2, 3, 4, 8, 11}) {
      auto sources = make_sources<TypeParam>(ranks, 531, 1);
      std::vector<TypeParam> want(531);
      for (std::size_t i = 0; i < want.size(); ++i) {
        want[i] = expected(sources, ReduceOp::sum, {}, i);
      }
      std::vector<const void*> from;
      std::vector<void*> to;
      for (auto& source : sources) {
        from.push_back(source.data());
        to.push_back(source.data());
      }
      reduce(
          {.sources = from, .destinations = to, .count = 531, .dtype = DtypeOf<TypeParam>::value});
      for (const auto& source : sources) {
        ASSERT_EQ(first_difference(source.data(), want.data(), want.size()), want.size()) << ranks;
        ASSERT_TRUE(source.guards_intact());
      }
    }
  });
}

template <class T>
class WideningKernels : public ::testing::Test {};
using SixteenBitTypes = ::testing::Types<Bfloat16, Float16>;
TYPED_TEST_SUITE(WideningKernels, SixteenBitTypes, ElementNames);

TYPED_TEST(WideningKernels, keep_the_sum_in_fp32) {
  on_every_target([] {
    for (const std::size_t ranks : {1, 2, 3, 4, 7, 16}) {
      for (const std::size_t count : {0, 1, 15, 16, 17, 256, 531}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements");
        const auto sources = make_sources<TypeParam>(ranks, count, 1);
        std::vector<const void*> from;
        for (const auto& source : sources) {
          from.push_back(source.data());
        }
        Guarded<float> sums(count, 1);
        void* const to = sums.data();
        reduce({.sources = from,
                .destinations = {&to, 1},
                .count = static_cast<std::int64_t>(count),
                .dtype = DtypeOf<TypeParam>::value,
                .scale = 0.2,
                .widen = true});
        std::vector<float> want(count);
        for (std::size_t i = 0; i < count; ++i) {
          const float sum = tree(sources, ReduceOp::sum, 0, ranks, i) * 0.2f;
          want[i] = std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum;
        }
        ASSERT_EQ(first_difference(sums.data(), want.data(), count), count);
        ASSERT_TRUE(sums.guards_intact());
      }
    }
  });
}

// One value per rank in, the reduced value out.
template <class T>
T reduce_values(const std::vector<T>& values, std::optional<double> scale = {},
                ReduceOp op = ReduceOp::sum) {
  std::vector<const void*> from;
  for (const T& value : values) {
    from.push_back(&value);
  }
  T result{};
  void* const to = &result;
  reduce({.sources = from,
          .destinations = {&to, 1},
          .count = 1,
          .dtype = DtypeOf<T>::value,
          .op = op,
          .scale = scale});
  return result;
}

TEST(ReduceKernelValues, A23_sixteen_bit_floats_add_in_fp32_and_round_once) {
  on_every_target([] {
    const auto bf16 = [](float value) { return to_bfloat16(value); };
    const auto mean = reduce_values<Bfloat16>({bf16(256), bf16(1), bf16(1), bf16(1)}, 0.25);
    EXPECT_EQ(to_float(mean), 65.0f);  // 259 / 4 = 64.75; adding in bf16 gives 64
    const auto large = std::vector<Float16>(4, to_float16(30000.0f));
    EXPECT_EQ(to_float(reduce_values(large, 0.25)), to_float(to_float16(30000.0f)));
    EXPECT_EQ(reduce_values<float>({256, 1, 1, 1}), 259.0f);
  });
}

TEST(ReduceKernelValues, C30_mean_of_three_elements) {
  on_every_target([] {
    const std::vector<float> rank0(3, 1.0f);
    const std::vector<float> rank1(3, 2.0f);
    const void* const from[] = {rank0.data(), rank1.data()};
    std::vector<float> result(3);
    void* const to[] = {result.data()};
    reduce({.sources = from, .destinations = to, .count = 3, .op = ReduceOp::mean, .scale = 0.5});
    EXPECT_EQ(result, std::vector<float>(3, 1.5f));
  });
}

TEST(ReduceKernelValues, C34_cancellation_follows_the_documented_order) {
  on_every_target([] {
    // (1e8 + 1) + (-1e8 + 1) = 1e8 + (-1e8): both ones are lost in their pairs.
    EXPECT_EQ(reduce_values<float>({1e8f, 1.0f, -1e8f, 1.0f}), 0.0f);
    // A running sum would give 1.
    EXPECT_EQ(((1e8f + 1.0f) + -1e8f) + 1.0f, 1.0f);
  });
}

TEST(ReduceKernelValues, extremes_of_nan_zero_and_wrapping_integers) {
  on_every_target([] {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum}) {
      EXPECT_TRUE(std::isnan(reduce_values<float>({1.0f, nan, 2.0f}, {}, op)));
      EXPECT_TRUE(std::isnan(reduce_values<float>({nan, 1.0f, 2.0f}, {}, op)));
      EXPECT_TRUE(std::isnan(reduce_values<float>({1.0f, 2.0f, nan}, {}, op)));
    }
    EXPECT_TRUE(std::signbit(reduce_values<float>({-0.0f, 0.0f}, {}, ReduceOp::max)));
    EXPECT_FALSE(std::signbit(reduce_values<float>({0.0f, -0.0f}, {}, ReduceOp::min)));
    EXPECT_EQ(reduce_values<std::int32_t>({INT32_MAX, 1}), INT32_MIN);
    EXPECT_EQ(reduce_values<std::int64_t>({INT64_MIN, -1}), INT64_MAX);
    EXPECT_EQ(reduce_values<std::uint8_t>({200, 100}), 44);
    EXPECT_EQ(reduce_values<std::uint8_t>({200, 100}, {}, ReduceOp::max), 200);
    EXPECT_EQ(reduce_values<std::int32_t>({-5, 3}, {}, ReduceOp::max), 3);
    EXPECT_EQ(reduce_values<std::int64_t>({-5, 3}, {}, ReduceOp::min), -5);
  });
}

TEST(ReduceKernelValues, callers_rounding_mode_and_flush_to_zero_do_not_matter) {
  on_every_target([] {
    const float tiny = std::numeric_limits<float>::denorm_min();
#if defined(__SSE__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040u | 0x6000u);  // flush-to-zero, denormals-are-zero, round to zero
    const float sum = reduce_values<float>({tiny, tiny});
    const float rounded = reduce_values<float>({1.0f, 0x1.8p-24f});
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & 0xe040u, 0xe040u);
    EXPECT_EQ(rounded, 1.0f + 0x1p-23f);
#else
    const float sum = reduce_values<float>({tiny, tiny});
#endif
    EXPECT_EQ(sum, 2 * tiny);
  });
}

TEST(ReduceKernelValues, misuse_breaks_an_invariant) {
  float value = 1.0f;
  const void* const from = &value;
  void* const to = &value;
  ReduceTask task{.sources = {&from, 1}, .destinations = {&to, 1}, .count = 1};
  task.count = -1;
  EXPECT_THROW(reduce(task), InvariantBroken);
  task.count = 1;
  task.sources = {};
  EXPECT_THROW(reduce(task), InvariantBroken);
  task.sources = {&from, 1};
  task.round_to = Dtype::f64;
  EXPECT_THROW(reduce(task), InvariantBroken);
  task.round_to.reset();
  task.dtype = Dtype::i32;
  task.scale = 0.5;
  EXPECT_THROW(reduce(task), InvariantBroken);
}

TEST(ReduceKernelValues, the_target_in_use_has_a_name) {
  on_every_target(
      [] { EXPECT_STREQ(simd_target(), hwy::TargetName(hwy::SupportedTargets() & HWY_TARGETS)); });
}

}  // namespace
}  // namespace lockstep::comm
