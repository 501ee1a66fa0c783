#include "optim/kernels.h"

#include "base/float16.h"
#include "base/guarded.h"
#include "base/simd_targets.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace lockstep::optim {
namespace {

using test::first_difference;
using test::Guarded;
using test::on_every_target;

template <class T>
constexpr bool is_half = std::is_same_v<T, Bfloat16> || std::is_same_v<T, Float16>;

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_half<From>) {
    return static_cast<To>(to_float(value));
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Float16>) {
    return to_float16(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

// Values of mixed size and sign, with zeros, denormals, ties of bf16 and infinities among them.
template <class T>
Guarded<T> random_values(std::size_t count, std::size_t misalignment, bool finite_only = false) {
  static std::mt19937_64 random(7);
  const double special[] = {0.0,      -0.0,    1e-40,     -3e-42,   0x1.01p0,
                            0x1.03p0, 65519.0, 0x1.8p-25, INFINITY, -INFINITY};
  const std::size_t usable = std::size(special) - (finite_only ? 2 : 0);
  Guarded<T> values(count, misalignment);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = random();
    const double spread = std::ldexp(static_cast<double>(bits >> 40) * 0x1p-24 - 0.5,
                                     static_cast<int>(bits & 15) - 8);
    values[i] = converted<T>(bits / 16 % 8 == 0 ? special[bits / 128 % usable] : spread);
  }
  return values;
}

std::vector<std::size_t> counts() {
  std::vector<std::size_t> all;
  for (std::size_t count = 0; count < 2 * 16 + 3; ++count) {
    all.push_back(count);
  }
  all.insert(all.end(), {63, 64, 65, 1000, 4099});
  return all;
}

template <class T>
Vector view(Guarded<T>& values) {
  return {values.data(), DtypeOf<T>::value};
}
template <class T>
ConstVector const_view(const Guarded<T>& values) {
  return {values.data(), DtypeOf<T>::value};
}

template <class T>
void expect_equal(const Guarded<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(first_difference(got.data(), want.data(), want.size()), want.size());
  ASSERT_TRUE(got.guards_intact());
}

template <class To, class From>
void check_convert() {
  for (const std::size_t count : counts()) {
    const auto source = random_values<From>(count, count % 3);
    Guarded<To> destination(count, count % 5);
    std::vector<To> want;
    for (std::size_t i = 0; i < count; ++i) {
      want.push_back(converted<To>(source[i]));
    }
    convert(view(destination), const_view(source), static_cast<std::int64_t>(count));
    ASSERT_NO_FATAL_FAILURE(expect_equal(destination, want));
  }
}

TEST(OptimKernels, convert_equals_the_scalar_conversion) {
  on_every_target([] {
    check_convert<float, float>();
    check_convert<double, double>();
    check_convert<Bfloat16, Bfloat16>();
    check_convert<Float16, Float16>();
    check_convert<float, Bfloat16>();
    check_convert<Bfloat16, float>();
    check_convert<float, Float16>();
    check_convert<Float16, float>();
    check_convert<double, float>();
    check_convert<float, double>();
  });
}

TEST(OptimKernels, convert_copies_large_vectors_wherever_they_lie) {
  std::mt19937 random(2);
  std::vector<std::uint16_t> bits(1'000'040);
  std::ranges::generate(bits, [&] { return static_cast<std::uint16_t>(random()); });
  on_every_target([&] {
    for (const std::size_t count : {999'999, 1'000'000, 1'000'001, 1'000'037}) {
      for (const std::size_t misalignment : {0, 1, 31}) {
        Guarded<std::uint16_t> destination(count, misalignment);
        convert({destination.data(), Dtype::bf16}, {bits.data() + 3, Dtype::bf16},
                static_cast<std::int64_t>(count));
        ASSERT_EQ(first_difference(destination.data(), bits.data() + 3, count), count);
        ASSERT_TRUE(destination.guards_intact());
      }
    }
    convert({bits.data(), Dtype::bf16}, {bits.data(), Dtype::bf16}, 1'000'000);  // onto itself
  });
}

TEST(OptimKernels, convert_of_every_sixteen_bit_pattern_and_back) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    patterns[i] = static_cast<std::uint16_t>(i);
  }
  const auto count = static_cast<std::int64_t>(patterns.size());
  on_every_target([&] {
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      std::vector<float> wide(patterns.size());
      std::vector<std::uint16_t> back(patterns.size());
      convert({wide.data(), Dtype::f32}, {patterns.data(), dtype}, count);
      convert({back.data(), dtype}, {wide.data(), Dtype::f32}, count);
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        const float want =
            dtype == Dtype::bf16 ? to_float(Bfloat16{patterns[i]}) : to_float(Float16{patterns[i]});
        const std::uint16_t want_back =
            dtype == Dtype::bf16 ? to_bfloat16(want).bits : to_float16(want).bits;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(want)) << i;
        ASSERT_EQ(back[i], want_back) << i;
      }
    }
  });
}

// Narrowing at ties, next to them and across all exponents.
TEST(OptimKernels, convert_rounds_as_the_scalar_code_on_millions_of_patterns) {
  std::vector<float> values;
  std::mt19937 random(11);
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u,
                                      0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
    values.push_back(
        std::bit_cast<float>(upper << 16 | static_cast<std::uint32_t>(random() & 0xffffu)));
  }
  std::vector<std::uint16_t> got(values.size());
  on_every_target([&] {
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      convert({got.data(), dtype}, {values.data(), Dtype::f32},
              static_cast<std::int64_t>(values.size()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto want =
            dtype == Dtype::bf16 ? to_bfloat16(values[i]).bits : to_float16(values[i]).bits;
        ASSERT_EQ(got[i], want) << name_of(dtype) << " of " << values[i];
      }
    }
  });
}

// What add() documents: the left type's addition, one canonical NaN.
template <class Left, class Right>
Left sum_of(Left left, Right right) {
  const Left sum = left + converted<Left>(right);
  return std::isnan(sum) ? std::numeric_limits<Left>::quiet_NaN() : sum;
}

template <class Left, class Right>
void check_add() {
  for (const std::size_t count : counts()) {
    auto left = random_values<Left>(count, count % 4);
    const auto right = random_values<Right>(count, count % 3);
    Guarded<Left> sum(count, 1);
    std::vector<Left> want;
    for (std::size_t i = 0; i < count; ++i) {
      want.push_back(sum_of(left[i], right[i]));
    }
    const auto elements = static_cast<std::int64_t>(count);
    add(view(sum), const_view(left), const_view(right), elements);
    ASSERT_NO_FATAL_FAILURE(expect_equal(sum, want));
    accumulate(view(left), const_view(right), elements);
    ASSERT_NO_FATAL_FAILURE(expect_equal(left, want));
  }
}

TEST(OptimKernels, add_and_accumulate_in_the_type_of_the_sum) {
  on_every_target([] {
    check_add<float, float>();
    check_add<float, Bfloat16>();
    check_add<float, Float16>();
    check_add<double, double>();
  });
}

TEST(OptimKernels, A23_accumulated_bf16_gradients_do_not_stick) {
  on_every_target([] {
    const Bfloat16 gradients[] = {to_bfloat16(256), to_bfloat16(0.75)};
    float sum = 0;
    accumulate({&sum, Dtype::f32}, {&gradients[0], Dtype::bf16}, 1);
    for (int i = 0; i < 8; ++i) {
      accumulate({&sum, Dtype::f32}, {&gradients[1], Dtype::bf16}, 1);
    }
    EXPECT_EQ(sum, 262.0f);
  });
}

template <class T>
void check_scale(double factor, std::optional<Dtype> round_to) {
  using Lane = std::conditional_t<std::is_same_v<T, double>, double, float>;
  for (const std::size_t count : counts()) {
    auto values = random_values<T>(count, count % 3);
    std::vector<T> want;
    for (std::size_t i = 0; i < count; ++i) {
      Lane product = converted<Lane>(values[i]) * static_cast<Lane>(factor);
      product = std::isnan(product) ? std::numeric_limits<Lane>::quiet_NaN() : product;
      if (round_to == Dtype::bf16) {
        product = to_float(to_bfloat16(static_cast<float>(product)));
      } else if (round_to == Dtype::f16) {
        product = to_float(to_float16(static_cast<float>(product)));
      }
      want.push_back(converted<T>(product));
    }
    scale(view(values), factor, round_to, static_cast<std::int64_t>(count));
    ASSERT_NO_FATAL_FAILURE(expect_equal(values, want));
  }
}

TEST(OptimKernels, scale_multiplies_and_rounds_once) {
  on_every_target([] {
    for (const double factor : {1.0, 0.25, 1.0 / 3.0, -7.0, 0.0}) {
      check_scale<float>(factor, {});
      check_scale<float>(factor, Dtype::bf16);
      check_scale<float>(factor, Dtype::f16);
      check_scale<double>(factor, {});
      check_scale<Bfloat16>(factor, {});
      check_scale<Float16>(factor, {});
    }
  });
}

// The oracle: one element, the operations in kernels.h's order.
template <class Lane>
void reference_step(Lane& p, Lane& m, Lane& v, Lane gradient, const AdamWStep& step) {
  const double t = static_cast<double>(step.step);
  const auto rate = static_cast<Lane>(step.lr / (1.0 - std::pow(step.beta1, t)));
  const auto root = static_cast<Lane>(std::sqrt(1.0 - std::pow(step.beta2, t)));
  const Lane g = gradient * static_cast<Lane>(step.clip);
  m = m * static_cast<Lane>(step.beta1) + static_cast<Lane>(1.0 - step.beta1) * g;
  v = v * static_cast<Lane>(step.beta2) + static_cast<Lane>(1.0 - step.beta2) * g * g;
  p = p * static_cast<Lane>(1.0 - step.lr * step.weight_decay) -
      rate * m / (std::sqrt(v) / root + static_cast<Lane>(step.eps));
}

template <class Weight, class Gradient>
void check_adamw() {
  using Lane = std::conditional_t<std::is_same_v<Weight, double>, double, float>;
  constexpr bool kMaster = std::is_same_v<Weight, Bfloat16>;
  for (const std::size_t count : counts()) {
    auto weights = random_values<Lane>(count, count % 3, true);
    Guarded<Lane> first(count, 1);
    Guarded<Lane> second(count, 2);
    Guarded<Weight> cast(count, count % 4);
    std::vector<Lane> p(weights.data(), weights.data() + count);
    std::vector<Lane> m(count, 0);
    std::vector<Lane> v(count, 0);
    std::fill_n(first.data(), count, Lane{0});
    std::fill_n(second.data(), count, Lane{0});
    for (std::int64_t t = 1; t <= 3; ++t) {
      const auto gradient = random_values<Gradient>(count, count % 5, true);
      const AdamWStep step{.lr = 3e-3, .weight_decay = 0.1, .step = t, .clip = 0.7f};
      AdamWVectors vectors{.parameter = view(weights),
                           .first_moment = first.data(),
                           .second_moment = second.data(),
                           .gradient = const_view(gradient)};
      if constexpr (kMaster) {
        vectors.master = weights.data();
        vectors.parameter = view(cast);
      }
      adamw(vectors, step, static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i) {
        reference_step(p[i], m[i], v[i], converted<Lane>(gradient[i]), step);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(weights, p));
    ASSERT_NO_FATAL_FAILURE(expect_equal(first, m));
    ASSERT_NO_FATAL_FAILURE(expect_equal(second, v));
    if constexpr (kMaster) {
      std::vector<Weight> rounded;
      for (const Lane value : p) {
        rounded.push_back(to_bfloat16(value));
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(cast, rounded));
    }
  }
}

TEST(OptimKernels, adamw_equals_the_scalar_oracle_bit_for_bit) {
  on_every_target([] {
    check_adamw<float, float>();
    check_adamw<float, Bfloat16>();
    check_adamw<double, double>();
    check_adamw<Bfloat16, Bfloat16>();
    check_adamw<Bfloat16, float>();
  });
}

// The published algorithm (Loshchilov & Hutter 2019) in fp64 bounds what fp32 may lose.
TEST(OptimKernels, adamw_in_fp32_stays_near_the_published_formula) {
  const double beta1 = 0.9;
  const double beta2 = 0.999;
  double p = 0.8;
  double m = 0;
  double v = 0;
  float weight = 0.8f;
  float first = 0;
  float second = 0;
  for (std::int64_t t = 1; t <= 100; ++t) {
    const float gradient = 0.3f * static_cast<float>(std::sin(static_cast<double>(t)));
    const AdamWStep step{.lr = 1e-2, .weight_decay = 0.1, .step = t};
    adamw({.parameter = {&weight, Dtype::f32},
           .first_moment = &first,
           .second_moment = &second,
           .gradient = {&gradient, Dtype::f32}},
          step, 1);
    p -= step.lr * step.weight_decay * p;
    m = beta1 * m + (1 - beta1) * gradient;
    v = beta2 * v + (1 - beta2) * gradient * gradient;
    const double corrected = m / (1 - std::pow(beta1, t));
    p -= step.lr * corrected / (std::sqrt(v / (1 - std::pow(beta2, t))) + step.eps);
    ASSERT_NEAR(weight, p, 1e-5) << "step " << t;
  }
  EXPECT_GT(std::abs(weight - 0.8f), 0.01f);
}

// With both betas and eps at zero every update is exactly lr × sign(gradient).
TEST(OptimKernels, A23b_the_fp32_master_accumulates_updates_that_bf16_would_lose) {
  on_every_target([] {
    Bfloat16 weight = to_bfloat16(1.0f);
    Bfloat16 pure = weight;
    float master = 1.0f;
    float first = 0;
    float second = 0;
    const Bfloat16 gradient = to_bfloat16(1.0f);
    for (std::int64_t t = 1; t <= 500; ++t) {
      adamw({.parameter = {&weight, Dtype::bf16},
             .master = &master,
             .first_moment = &first,
             .second_moment = &second,
             .gradient = {&gradient, Dtype::bf16}},
            {.lr = 0.001, .beta1 = 0, .beta2 = 0, .eps = 0, .weight_decay = 0, .step = t}, 1);
      pure = to_bfloat16(to_float(pure) - 0.001f);
    }
    EXPECT_EQ(to_float(weight), 0.5f);
    EXPECT_NEAR(master, 0.5f, 1e-4f);
    EXPECT_EQ(to_float(pure), 1.0f);
  });
}

TEST(OptimKernels, callers_rounding_mode_does_not_matter) {
  on_every_target([] {
    const float values[] = {1.0f, 0x1.8p-24f};
    float sum = 0;
    const int before = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    add({&sum, Dtype::f32}, {&values[0], Dtype::f32}, {&values[1], Dtype::f32}, 1);
    const int after = std::fegetround();
    std::fesetround(before);
    EXPECT_EQ(sum, 1.0f + 0x1p-23f);
    EXPECT_EQ(after, FE_TOWARDZERO);
  });
}

TEST(OptimKernels, pairs_without_a_kernel_break_an_invariant_that_names_them) {
  double wide[2] = {};
  float narrow[2] = {};
  try {
    convert({wide, Dtype::f64}, {narrow, Dtype::bf16}, 1);
    FAIL() << "converted bf16 to f64";
  } catch (const InvariantBroken& error) {
    EXPECT_NE(std::string(error.what()).find("bf16 with f64"), std::string::npos) << error.what();
  }
  EXPECT_THROW(convert({narrow, Dtype::f32}, {narrow, Dtype::f32}, -1), InvariantBroken);
  EXPECT_THROW(accumulate({narrow, Dtype::f32}, {wide, Dtype::f64}, 1), InvariantBroken);
  EXPECT_THROW(add({narrow, Dtype::f32}, {wide, Dtype::f64}, {wide, Dtype::f64}, 1),
               InvariantBroken);
  EXPECT_THROW(scale({narrow, Dtype::i32}, 1.0, {}, 1), InvariantBroken);
  EXPECT_THROW(scale({wide, Dtype::f64}, 1.0, Dtype::bf16, 1), InvariantBroken);
  const AdamWVectors vectors{.parameter = {narrow, Dtype::f32},
                             .first_moment = narrow,
                             .second_moment = narrow,
                             .gradient = {wide, Dtype::f64}};
  EXPECT_THROW(adamw(vectors, {}, 1), InvariantBroken);
  EXPECT_THROW(adamw(vectors, {.step = 0}, 1), InvariantBroken);
  auto without_master = vectors;
  without_master.parameter.dtype = Dtype::bf16;
  EXPECT_THROW(adamw(without_master, {}, 1), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::optim
