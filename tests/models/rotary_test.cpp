#include "models/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::models {
namespace {

using torch::Tensor;

// Element by element, as the paper says, in double.
Tensor turned(const Tensor& x, double theta) {
  const Tensor result = x.to(torch::kFloat64).clone();  // [B, H, T, D]
  const std::int64_t half = x.size(3) / 2;
  for (std::int64_t t = 0; t < x.size(2); ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) /
          std::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(x.size(3)));
      const auto at = [&](std::int64_t element) {
        return x.select(3, element).select(2, t).to(torch::kFloat64);
      };
      result.select(3, i).select(2, t).copy_(at(i) * std::cos(angle) -
                                             at(i + half) * std::sin(angle));
      result.select(3, i + half)
          .select(2, t)
          .copy_(at(i + half) * std::cos(angle) + at(i) * std::sin(angle));
    }
  }
  return result;
}

TEST(Rotary, TurnsEachPairByItsAngle) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({2, 3, 9, 8});  // [B, H, T, D]
  for (const double theta : {10000.0, 100.0}) {
    const Tensor got = rotated(x, rotary_angles(9, 8, theta));
    EXPECT_TRUE(torch::allclose(got.to(torch::kFloat64), turned(x, theta), 1e-5, 1e-6)) << theta;
  }
}

TEST(Rotary, LeavesTheFirstPositionAndEveryLength) {
  const Tensor x = torch::randn({1, 1, 5, 4});
  const Tensor y = rotated(x, rotary_angles(5, 4, 10000.0));
  EXPECT_TRUE(torch::equal(y.select(2, 0), x.select(2, 0)));
  EXPECT_TRUE(torch::allclose(y.norm(2, -1), x.norm(2, -1), 1e-5, 1e-6));
}

TEST(Rotary, InBf16RoundsOnce) {
  const Tensor x = torch::randn({1, 2, 6, 4}).to(torch::kBFloat16);
  const RotaryAngles angles = rotary_angles(6, 4, 10000.0);
  const Tensor y = rotated(x, angles);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(y, rotated(x.to(torch::kFloat32), angles).to(torch::kBFloat16)));
}

}  // namespace
}  // namespace lockstep::models
