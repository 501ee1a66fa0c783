#include "models/embedding.h"

#include "models/exact.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::models {
namespace {

using torch::Tensor;

Tensor leaf(torch::IntArrayRef shape, torch::Dtype type) {
  return torch::randn(shape).to(type).requires_grad_(true);
}

TEST(Embedding, GivesTheRowsOfTheTokens) {
  torch::manual_seed(1);
  const Tensor weight = leaf({5, 3}, torch::kFloat32);
  const Tensor tokens = torch::tensor({{4, 0}, {4, 2}}, torch::kInt64);  // [B, T]
  const Tensor rows = embed(tokens, shared_weight(weight));              // [B, T, C]
  EXPECT_TRUE(torch::equal(rows, torch::embedding(weight, tokens)));
}

TEST(Embedding, InF32HasLibTorchsGradient) {
  torch::manual_seed(1);
  const Tensor weight = leaf({7, 5}, torch::kFloat32);
  const Tensor tokens = torch::tensor({{6, 0, 6}, {3, 6, 1}}, torch::kInt64);
  const Tensor sent = torch::randn({2, 3, 5});
  embed(tokens, shared_weight(weight)).backward(sent);
  const Tensor expected =
      torch::embedding_dense_backward(sent, tokens, 7, /*padding_idx=*/-1, false);
  EXPECT_FALSE(weight.grad().is_sparse());
  EXPECT_TRUE(torch::equal(weight.grad(), expected));
}

// LibTorch's own bf16 kernel ends at 256 here: adding 1 to 256 in bf16 changes nothing.
TEST(Embedding, InBf16AddsInFp32AndRoundsOnce) {
  const Tensor weight = leaf({2, 1}, torch::kBFloat16);
  const std::int64_t count = 4096;
  const Tensor tokens = torch::zeros({1, count}, torch::kInt64);
  embed(tokens, shared_weight(weight)).backward(torch::ones({1, count, 1}, torch::kBFloat16));
  EXPECT_EQ(weight.grad().scalar_type(), torch::kBFloat16);
  EXPECT_EQ(weight.grad()[0][0].item<float>(), 4096.0f);
  EXPECT_EQ(weight.grad()[1][0].item<float>(), 0.0f);
}

constexpr std::int64_t kManyRows = 16384;

// Tokens of a text: a few are frequent, most are rare.
Tensor zipfian_tokens(std::int64_t vocabulary) {
  const Tensor frequencies = torch::reciprocal(torch::arange(1, vocabulary + 1, torch::kFloat64));
  return torch::multinomial(frequencies, kManyRows, /*replacement=*/true).view({1, kManyRows});
}

TEST(Embedding, InBf16AtManyRowsIsOneRoundingFromExact) {
  torch::manual_seed(1);
  const Tensor weight = leaf({500, 32}, torch::kBFloat16);
  const Tensor tokens = zipfian_tokens(500);
  const Tensor noise = torch::randn({1, kManyRows, 32}).to(torch::kBFloat16);
  for (const Tensor& sent : {noise, (noise + 1).to(torch::kBFloat16)}) {
    weight.mutable_grad() = Tensor();
    embed(tokens, shared_weight(weight)).backward(sent);
    const Tensor exact = exact_leaf(weight);
    torch::embedding(exact, tokens).backward(sent.to(torch::kFloat64));
    EXPECT_LE(relative_error(weight.grad(), exact.grad()), 0x1p-8);
  }
}

// Embedding and head of one weight: both gradients round, and so does their sum.
TEST(Embedding, InBf16AtManyRowsATiedWeightIsTwoRoundingsFromExact) {
  torch::manual_seed(1);
  const Tensor weight = leaf({500, 32}, torch::kBFloat16);
  const Tensor tokens = zipfian_tokens(500);
  const Tensor hidden = torch::randn({1, kManyRows, 32}).to(torch::kBFloat16);
  const Tensor to_rows = torch::randn({1, kManyRows, 32}).to(torch::kBFloat16);
  const Tensor to_logits = torch::randn({1, kManyRows, 500}).to(torch::kBFloat16);
  const Tensor tied = shared_weight(weight);
  torch::autograd::backward({embed(tokens, tied), torch::linear(hidden, tied)},
                            {to_rows, to_logits});
  const Tensor exact = exact_leaf(weight);
  torch::autograd::backward(
      {torch::embedding(exact, tokens), torch::linear(hidden.to(torch::kFloat64), exact)},
      {to_rows.to(torch::kFloat64), to_logits.to(torch::kFloat64)});
  EXPECT_EQ(weight.grad().scalar_type(), torch::kBFloat16);
  EXPECT_LE(relative_error(weight.grad(), exact.grad()), 0x1p-7);
}

// Case G21: one tensor used as embedding and head gets the sum of both gradients, once.
TEST(Embedding, G21_tied_to_a_head_adds_both_gradients) {
  const Tensor weight = torch::ones({3, 2}).requires_grad_(true);
  const Tensor tied = shared_weight(weight);
  const Tensor rows = embed(torch::tensor({{1, 1}}, torch::kInt64), tied);  // [1, 2, 2]
  (2 * rows.sum() + 3 * tied.sum()).backward();
  EXPECT_TRUE(torch::equal(weight.grad(), torch::tensor({{3.f, 3.f}, {7.f, 7.f}, {3.f, 3.f}})));
}

TEST(Embedding, AloneStillSendsADenseGradient) {
  const Tensor weight = leaf({4, 2}, torch::kFloat32);
  embed(torch::tensor({2}, torch::kInt64), shared_weight(weight)).sum().backward();
  EXPECT_FALSE(weight.grad().is_sparse());
  EXPECT_EQ(weight.grad().sum().item<float>(), 2.0f);
}

TEST(Embedding, TakesNoTokensAtAll) {
  const Tensor weight = leaf({4, 2}, torch::kFloat32);
  const Tensor rows = embed(torch::zeros({0}, torch::kInt64), shared_weight(weight));
  EXPECT_EQ(rows.sizes(), (torch::IntArrayRef{0, 2}));
  rows.sum().backward();
  EXPECT_EQ(weight.grad().abs().sum().item<float>(), 0.0f);
}

TEST(SharedWeight, IsTheWeightItself) {
  const Tensor weight = leaf({4, 2}, torch::kFloat32);
  EXPECT_EQ(shared_weight(weight).const_data_ptr(), weight.const_data_ptr());
  EXPECT_TRUE(shared_weight(weight).requires_grad());
  const torch::NoGradGuard no_gradients;
  EXPECT_TRUE(shared_weight(weight).is_same(weight));
}

}  // namespace
}  // namespace lockstep::models
