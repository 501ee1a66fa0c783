#include "models/layer_norm.h"

#include "lockstep/error.h"
#include "models/exact.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::models {
namespace {

using torch::Tensor;

struct Case {
  Tensor x;       // [rows, C] bf16
  Tensor weight;  // [C] f32
  Tensor bias;    // [C] f32
  Tensor sent;    // [rows, C] bf16
};

Case make_case(std::int64_t rows, std::int64_t width) {
  torch::manual_seed(static_cast<std::uint64_t>(rows * 1000 + width));
  return {torch::randn({rows, width}).to(torch::kBFloat16).requires_grad_(true),
          torch::randn({width}).requires_grad_(true), torch::randn({width}).requires_grad_(true),
          torch::randn({rows, width}).to(torch::kBFloat16)};
}

TEST(LayerNorm, UnderBf16AgreesWithDoublePrecision) {
  for (const std::int64_t rows : {1, 2, 7, 64, 65}) {
    for (const std::int64_t width : {2, 63, 64, 65, 200}) {
      const Case mixed = make_case(rows, width);
      const Tensor y = layer_norm(mixed.x, mixed.weight, mixed.bias);
      y.backward(mixed.sent);

      const Tensor x = mixed.x.detach().to(torch::kFloat64).requires_grad_(true);
      const Tensor weight = mixed.weight.detach().to(torch::kFloat64).requires_grad_(true);
      const Tensor bias = mixed.bias.detach().to(torch::kFloat64).requires_grad_(true);
      const Tensor expected = torch::layer_norm(x, {width}, weight, bias);
      expected.backward(mixed.sent.to(torch::kFloat64));

      const auto close = [](const Tensor& got, const Tensor& wanted, double tolerance) {
        return torch::allclose(got.to(torch::kFloat64), wanted, tolerance, tolerance);
      };
      EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
      EXPECT_TRUE(close(y, expected, 1e-2)) << rows << " x " << width;
      EXPECT_TRUE(close(mixed.x.grad(), x.grad(), 2e-2)) << rows << " x " << width;
      EXPECT_TRUE(close(mixed.weight.grad(), weight.grad(), 1e-4)) << rows << " x " << width;
      EXPECT_TRUE(close(mixed.bias.grad(), bias.grad(), 1e-5)) << rows << " x " << width;
    }
  }
}

// LibTorch's own kernel adds these in bf16 and ends at 256.
TEST(LayerNorm, AddsGradientsOfManyRowsInFp32) {
  const Case mixed = make_case(4096, 8);
  layer_norm(mixed.x, mixed.weight, mixed.bias).backward(torch::ones({4096, 8}, torch::kBFloat16));
  EXPECT_TRUE(torch::equal(mixed.bias.grad(), torch::full({8}, 4096.0f)));
}

TEST(LayerNorm, InBf16AtManyRowsHasGradientsOfFp32) {
  const Case mixed = make_case(16384, 64);
  for (const Tensor& sent : {mixed.sent, (mixed.sent + 1).to(torch::kBFloat16)}) {
    mixed.weight.mutable_grad() = Tensor();
    mixed.bias.mutable_grad() = Tensor();
    layer_norm(mixed.x, mixed.weight, mixed.bias).backward(sent);
    const Tensor weight = exact_leaf(mixed.weight);
    const Tensor bias = exact_leaf(mixed.bias);
    torch::layer_norm(exact_leaf(mixed.x), {64}, weight, bias).backward(sent.to(torch::kFloat64));
    EXPECT_LE(relative_error(mixed.weight.grad(), weight.grad()), 1e-5);
    EXPECT_LE(relative_error(mixed.bias.grad(), bias.grad()), 1e-5);
  }
}

TEST(LayerNorm, HasTheSameBitsAtAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  std::vector<Tensor> gradients;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Case mixed = make_case(100, 200);
    layer_norm(mixed.x, mixed.weight, mixed.bias).backward(mixed.sent);
    gradients.push_back(mixed.weight.grad());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(torch::equal(gradients[0], gradients[1]));
  EXPECT_TRUE(torch::equal(gradients[0], gradients[2]));
}

TEST(LayerNorm, InF32IsLibTorchs) {
  const Tensor x = torch::randn({3, 5});
  const Tensor weight = torch::randn({5});
  const Tensor bias = torch::randn({5});
  EXPECT_TRUE(torch::equal(layer_norm(x, weight, bias), torch::layer_norm(x, {5}, weight, bias)));
}

TEST(LayerNorm, TakesStridedInput) {
  const Case mixed = make_case(6, 10);
  const Tensor turned = mixed.x.detach().t().contiguous().t();
  EXPECT_TRUE(torch::equal(layer_norm(turned, mixed.weight, mixed.bias),
                           layer_norm(mixed.x, mixed.weight, mixed.bias)));
}

TEST(LayerNorm, RefusesOtherMixes) {
  const Tensor x = torch::randn({3, 5});
  const Tensor weight = torch::randn({5}).to(torch::kBFloat16);
  EXPECT_THROW(layer_norm(x, weight, weight), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::models
