#include "models/language_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::models {
namespace {

// Logits that are known: each token's row of a table, in bf16.
class Table : public LanguageModel {
 public:
  explicit Table(const torch::Tensor& rows)
      : LanguageModel(Gpt2Config{.vocabulary = rows.size(1)}), rows_(rows) {}
  torch::Tensor forward(const torch::Tensor& tokens) override {
    ++forwards_;
    return torch::embedding(rows_, tokens).to(torch::kBFloat16);
  }
  std::int64_t forwards() const override { return forwards_; }

 private:
  torch::Tensor rows_;
  std::int64_t forwards_ = 0;
};

TEST(LanguageModel, LossIsTheMeanCrossEntropyInFp32) {
  Table model(torch::tensor({{0.0f, 2.0f}, {1.0f, 1.0f}}));
  const torch::Tensor tokens = torch::tensor({{0, 1}, {0, 0}}, torch::kInt64);
  const torch::Tensor targets = torch::tensor({{1, 1}, {0, 1}}, torch::kInt64);
  const double likely = std::log1p(std::exp(-2.0));
  const double expected = (likely + std::log(2.0) + (likely + 2.0) + likely) / 4;
  const torch::Tensor loss = model.loss(tokens, targets);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat32);
  EXPECT_NEAR(loss.item<double>(), expected, 1e-6);
  EXPECT_EQ(model.forwards(), 1);
  EXPECT_EQ(model.facts().vocabulary, 2);
}

}  // namespace
}  // namespace lockstep::models
