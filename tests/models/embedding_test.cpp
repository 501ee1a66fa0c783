#include "models/embedding.h"

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
