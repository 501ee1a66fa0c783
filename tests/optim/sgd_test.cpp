#include "optim/sgd.h"

#include "base/float16.h"
#include "base/guarded.h"
#include "base/simd_targets.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace lockstep::optim {
namespace {

using test::first_difference;
using test::Guarded;
using test::on_every_target;

// One element with the operations in sgd.h's order.
template <class Lane>
void reference_step(Lane& p, Lane& b, Lane gradient, const SgdStep& step) {
  const Lane g = gradient * static_cast<Lane>(step.clip);
  const Lane d = g + static_cast<Lane>(step.weight_decay) * p;
  Lane direction = d;
  if (step.momentum != 0) {
    const auto keep = static_cast<Lane>(step.step == 1 ? 0 : step.momentum);
    const auto take = static_cast<Lane>(step.step == 1 ? 1 : 1 - step.dampening);
    b = b * keep + take * d;
    direction = step.nesterov ? d + static_cast<Lane>(step.momentum) * b : b;
  }
  p = p - static_cast<Lane>(step.lr) * direction;
}

template <class T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class Lane, class T>
Lane widened(T value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return static_cast<Lane>(to_float(value));
  } else {
    return static_cast<Lane>(value);
  }
}

template <class T>
Guarded<T> random_values(std::size_t count, std::size_t misalignment) {
  static std::mt19937 random(13);
  std::normal_distribution<double> normal;
  Guarded<T> values(count, misalignment);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = narrowed<T>(normal(random));
  }
  return values;
}

template <class T>
void expect_equal(const Guarded<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(first_difference(got.data(), want.data(), want.size()), want.size());
  ASSERT_TRUE(got.guards_intact());
}

template <class Weight, class Gradient>
void check_sgd(SgdStep step, std::size_t count) {
  using Lane = std::conditional_t<std::is_same_v<Weight, double>, double, float>;
  constexpr bool kMaster = std::is_same_v<Weight, Bfloat16>;
  auto weights = random_values<Lane>(count, count % 3);
  Guarded<Lane> momentum(count, 1);
  Guarded<Weight> cast(count, count % 4);
  std::fill_n(momentum.data(), count, Lane{7});  // the first step does not hang on it
  std::vector<Lane> p(weights.data(), weights.data() + count);
  std::vector<Lane> b(count, Lane{7});
  for (step.step = 1; step.step <= 3; ++step.step) {
    const auto gradient = random_values<Gradient>(count, count % 5);
    SgdVectors vectors{.parameter = {weights.data(), DtypeOf<Lane>::value},
                       .momentum = momentum.data(),
                       .gradient = {gradient.data(), DtypeOf<Gradient>::value}};
    if constexpr (kMaster) {
      vectors.master = weights.data();
      vectors.parameter = {cast.data(), Dtype::bf16};
    }
    sgd(vectors, step, static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      reference_step(p[i], b[i], widened<Lane>(gradient[i]), step);
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_equal(weights, p));
  ASSERT_NO_FATAL_FAILURE(expect_equal(momentum, b));
  if constexpr (kMaster) {
    std::vector<Weight> rounded;
    for (const Lane value : p) {
      rounded.push_back(to_bfloat16(value));
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(cast, rounded));
  }
}

const SgdStep kSteps[] = {
    {.lr = 0.1, .clip = 1.0f},
    {.lr = 0.1, .weight_decay = 0.3, .clip = 0.7f},
    {.lr = 0.1, .momentum = 0.9, .clip = 0.7f},
    {.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.3},
    {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3, .nesterov = true, .clip = 0.5f},
};

TEST(SgdKernel, EqualsTheScalarOracleBitForBit) {
  on_every_target([] {
    for (const SgdStep& step : kSteps) {
      for (const std::size_t count : {0, 1, 2, 7, 15, 16, 17, 33, 64, 65, 1000}) {
        ASSERT_NO_FATAL_FAILURE((check_sgd<float, float>(step, count)));
        ASSERT_NO_FATAL_FAILURE((check_sgd<float, Bfloat16>(step, count)));
        ASSERT_NO_FATAL_FAILURE((check_sgd<double, double>(step, count)));
        ASSERT_NO_FATAL_FAILURE((check_sgd<Bfloat16, Bfloat16>(step, count)));
        ASSERT_NO_FATAL_FAILURE((check_sgd<Bfloat16, float>(step, count)));
      }
    }
  });
}

TEST(SgdKernel, MomentumIsNotNeededWithoutAFactor) {
  float weight = 1.0f;
  const float gradient = 0.5f;
  sgd({.parameter = {&weight, Dtype::f32}, .gradient = {&gradient, Dtype::f32}}, {.lr = 0.5}, 1);
  EXPECT_EQ(weight, 0.75f);
}

TEST(SgdKernel, WhatItDoesNotKnowBreaksAnInvariant) {
  float values[2] = {};
  double wide[2] = {};
  const SgdVectors vectors{.parameter = {values, Dtype::f32}, .gradient = {values, Dtype::f32}};
  EXPECT_THROW(sgd(vectors, {.momentum = 0.5}, 1), InvariantBroken);
  EXPECT_THROW(sgd(vectors, {.step = 0}, 1), InvariantBroken);
  EXPECT_THROW(sgd(vectors, {}, -1), InvariantBroken);
  SgdVectors mixed = vectors;
  mixed.gradient = {wide, Dtype::f64};
  try {
    sgd(mixed, {}, 1);
    FAIL() << "took a f64 gradient for a f32 parameter";
  } catch (const InvariantBroken& error) {
    EXPECT_NE(std::string(error.what()).find("f32 with a gradient of f64"), std::string::npos);
  }
  SgdVectors without_master = vectors;
  without_master.parameter.dtype = Dtype::bf16;
  EXPECT_THROW(sgd(without_master, {}, 1), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::optim
