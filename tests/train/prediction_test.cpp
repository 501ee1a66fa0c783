#include "train/prediction.h"

#include "models/catalogue.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

// Every matrix and vector of gpt2-tiny is a multiple of 64 elements, and 2 ranks pad by at most
// 128, so the formulas of the specification hold to a few hundred bytes.
constexpr std::int64_t kParameters = 858'880;
constexpr std::int64_t kNorms = 2 * 128 * (2 * 4 + 1);
constexpr std::int64_t kPadding = 4096;

void expect_but_for_padding(std::int64_t bytes, std::int64_t expected) {
  EXPECT_GE(bytes, expected);
  EXPECT_LE(bytes, expected + kPadding);
}

TEST(Prediction, OfF32IsSixteenBytesPerParameter) {
  const auto config = models::config_of("gpt2-tiny", 256);
  Options options;
  options.ranks = 2;
  const Prediction prediction = predict(config, options);
  expect_but_for_padding(prediction.ledger.parameters, 4 * kParameters);
  expect_but_for_padding(prediction.ledger.gradients, 4 * kParameters);
  expect_but_for_padding(prediction.ledger.optimizer, 8 * kParameters);
  // (P−1)/P·X sent.
  expect_but_for_padding(prediction.step.sent, 2 * kParameters);
}

TEST(Prediction, OfBf16CountsNormsInF32) {
  const auto config = models::config_of("gpt2-tiny", 256);
  Options options;
  options.ranks = 2;
  options.precision = PrecisionName::bf16;
  const Prediction prediction = predict(config, options);
  expect_but_for_padding(prediction.ledger.parameters, 2 * kParameters + 2 * kNorms);
  expect_but_for_padding(prediction.ledger.optimizer, 12 * kParameters - 4 * kNorms);
}

TEST(Prediction, OfSgdHoldsAMomentumOrNothing) {
  const auto config = models::config_of("gpt2-tiny", 256);
  Options options;
  options.optimizer = OptimizerName::sgd;
  EXPECT_EQ(predict(config, options).ledger.optimizer, 0);
  options.momentum = 0.9;
  expect_but_for_padding(predict(config, options).ledger.optimizer, 4 * kParameters);
}

TEST(Prediction, AloneMovesNothing) {
  const auto config = models::config_of("gpt2-tiny", 256);
  Options options;
  options.stage = Stage::single;
  EXPECT_EQ(predict(config, options).step.sent, 0);
}

}  // namespace
}  // namespace lockstep::train
