#include "models/rms_norm.h"

#include "lockstep/error.h"
#include "models/exact.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

namespace lockstep::models {
namespace {

using torch::Tensor;

constexpr double kEpsilon = 1e-5;

struct Case {
  Tensor x;       // [rows, C]
  Tensor weight;  // [C] f32
  Tensor sent;    // [rows, C]
};

Case make_case(std::int64_t rows, std::int64_t width, torch::Dtype dtype) {
  torch::manual_seed(static_cast<std::uint64_t>(rows * 1000 + width));
  return {torch::randn({rows, width}).to(dtype).requires_grad_(true),
          torch::randn({width}).requires_grad_(true), torch::randn({rows, width}).to(dtype)};
}

// The definition, in double precision.
Tensor spelled_out(const Tensor& x, const Tensor& weight) {
  return x * torch::rsqrt(x.square().mean(-1, true) + kEpsilon) * weight;
}

void expect_agreement(std::int64_t rows, std::int64_t width, torch::Dtype dtype) {
  const Case one = make_case(rows, width, dtype);
  const Tensor y = rms_norm(one.x, one.weight, kEpsilon);
  y.backward(one.sent);
  const Tensor x = exact_leaf(one.x);
  const Tensor weight = exact_leaf(one.weight);
  const Tensor expected = spelled_out(x, weight);
  expected.backward(one.sent.to(torch::kFloat64));
  const double rounding = dtype == torch::kFloat32 ? 1e-6 : 0x1p-8;
  EXPECT_EQ(y.scalar_type(), dtype);
  EXPECT_LE(relative_error(y, expected), rounding) << rows << " x " << width;
  EXPECT_LE(relative_error(one.x.grad(), x.grad()), rounding) << rows << " x " << width;
  EXPECT_LE(relative_error(one.weight.grad(), weight.grad()), 1e-6) << rows << " x " << width;
}

TEST(RmsNorm, AgreesWithDoublePrecision) {
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16}) {
    for (const std::int64_t rows : {1, 2, 16, 17, 65}) {
      for (const std::int64_t width : {2, 15, 16, 17, 64, 65, 200}) {
        expect_agreement(rows, width, dtype);
      }
    }
  }
}

TEST(RmsNorm, InBf16AtManyRowsHasWeightGradientsOfFp32) {
  const Case mixed = make_case(16384, 64, torch::kBFloat16);
  for (const Tensor& sent : {mixed.sent, torch::ones_like(mixed.sent)}) {
    mixed.weight.mutable_grad() = Tensor();
    rms_norm(mixed.x, mixed.weight, kEpsilon).backward(sent);
    const Tensor weight = exact_leaf(mixed.weight);
    spelled_out(exact_leaf(mixed.x), weight).backward(sent.to(torch::kFloat64));
    EXPECT_EQ(mixed.weight.grad().scalar_type(), torch::kFloat32);
    EXPECT_LE(relative_error(mixed.weight.grad(), weight.grad()), 1e-5);
  }
}

TEST(RmsNorm, HasTheSameBitsAtAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  std::vector<Case> cases;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    cases.push_back(make_case(100, 200, torch::kFloat32));
    rms_norm(cases.back().x, cases.back().weight, kEpsilon).backward(cases.back().sent);
  }
  at::set_num_threads(before);
  for (const Case& one : cases) {
    EXPECT_TRUE(torch::equal(one.weight.grad(), cases[0].weight.grad()));
    EXPECT_TRUE(torch::equal(one.x.grad(), cases[0].x.grad()));
  }
}

TEST(RmsNorm, TakesStridedInputOfAnyRank) {
  const Case one = make_case(6, 10, torch::kFloat32);
  const Tensor expected = rms_norm(one.x, one.weight, kEpsilon);
  const Tensor turned = one.x.detach().t().contiguous().t();
  EXPECT_TRUE(torch::equal(rms_norm(turned, one.weight, kEpsilon), expected));
  EXPECT_TRUE(torch::equal(rms_norm(one.x.view({2, 3, 10}), one.weight, kEpsilon),
                           expected.view({2, 3, 10})));
}

TEST(RmsNorm, RefusesOtherMixes) {
  const Tensor x = torch::randn({3, 5});
  EXPECT_THROW(rms_norm(x, torch::ones({5}, torch::kBFloat16), kEpsilon), InvariantBroken);
  EXPECT_THROW(rms_norm(x, torch::ones({4}), kEpsilon), InvariantBroken);
  EXPECT_THROW(rms_norm(x.to(torch::kFloat64), torch::ones({5}), kEpsilon), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::models
