// Runs many configurations of training in one launch, and holds them to one result.
#pragma once

#include "lockstep/group.h"
#include "models/language_model.h"
#include "support/pairwise.h"
#include "support/ranks.h"
#include "support/temporary_folder.h"
#include "train/prediction.h"
#include "train/trainer.h"
#include "train/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

// The factors, and their values. What is the same for a kind must not change a bit.
inline const std::array<std::pair<const char*, PrecisionName>, 4> kKinds{
    {{"gpt2-tiny", PrecisionName::f32},
     {"gpt2-tiny", PrecisionName::bf16},
     {"llama-tiny", PrecisionName::f32},
     {"llama-tiny", PrecisionName::bf16}}};
struct Layout {
  Stage stage;
  bool share_parameters = false;
  std::optional<std::int64_t> unit_blocks = {};
  std::optional<bool> reshard = {};
};
inline const std::array<Layout, 10> kLayouts{{{Stage::ddp},
                                              {Stage::zero1},
                                              {Stage::zero2},
                                              {Stage::ddp, true},
                                              {Stage::zero1, true},
                                              {Stage::zero2, true},
                                              {Stage::zero3, false, 1, false},
                                              {Stage::zero3, false, 2, false},
                                              {Stage::zero3, false, 1, true},
                                              {Stage::zero3, false, 2, true}}};
inline constexpr std::array kBuckets{25.0, 1.0, 0.0};
inline constexpr std::array kRanks{4, 2, 1};
inline constexpr std::int64_t kLeaves = 4;

// kind, layout, bucket (of no meaning in zero3), recompute, overlap
inline const std::vector<std::size_t> kSizes{kKinds.size(), kLayouts.size(), kBuckets.size(), 2, 2};
using Row = std::vector<std::size_t>;

class Configurations {
 public:
  Configurations() {
    ::setenv("LOCKSTEP_CACHE", folder_.file("cache").c_str(), 1);
    std::string text;
    while (text.size() < 20'000) {
      text += "the quick brown fox jumps over the lazy dog. ";
    }
    folder_.write("text", text);
  }
  ~Configurations() { ::unsetenv("LOCKSTEP_CACHE"); }

  Options options_of(const Row& row) const {
    Options options;
    options.data = folder_.file("text");
    std::tie(options.model, options.precision) = kKinds.at(row[0]);
    options.dropout = options.model == "gpt2-tiny" ? 0.1 : 0.0;
    const Layout& layout = kLayouts.at(row[1]);
    options.stage = layout.stage;
    options.share_parameters = layout.share_parameters;
    options.unit_blocks = layout.unit_blocks;
    options.reshard = layout.reshard;
    options.bucket_mb = kBuckets.at(row[2]);
    options.recompute = row[3] == 1;
    options.overlap = row[4] == 0;
    options.ranks = static_cast<int>(kLeaves);
    options.micro_batch = 1;
    options.sequence = 16;
    options.steps = 20;
    options.learning_rate = 1e-2;
    options.eval_batches = 0;
    return options;
  }

  // Trains each on `ranks` ranks, `kLeaves` micro-batches a step together.
  void train(int ranks, const std::vector<Row>& rows, bool reproducible) {
    const auto results = test::run_ranks(
        ranks,
        [&](Group& world) {
          at::set_num_threads(1);
          std::vector<double> all;
          for (const Row& row : rows) {
            Options options = options_of(row);
            options.ranks = ranks;
            options.accumulate = kLeaves / ranks;
            options.reproducible = reproducible;
            SCOPED_TRACE(to_toml(options));
            const std::vector<double> one = result_of(options, world);
            all.insert(all.end(), one.begin(), one.end());
          }
          return all;
        },
        {.deadline = std::chrono::seconds(120), .test_limit = std::chrono::seconds(3000)});
    for (const test::RankResult& result : results) {
      ASSERT_EQ(result.error, "");
      ASSERT_EQ(result.values.size(), rows.size() * kResult);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto begin = result.values.begin() + static_cast<std::ptrdiff_t>(i * kResult);
        expect_the_result_of_its_kind(rows[i], {begin, begin + kResult}, ranks);
      }
    }
  }

 private:
  static constexpr std::int64_t kSteps = 20;
  static constexpr std::ptrdiff_t kResult = 2 * kSteps + 32;  // losses, norms, hash

  static std::vector<double> result_of(const Options& options, Group& world) {
    Trainer trainer(options, world);
    const Prediction predicted = predict(trainer.model().configuration(), options);
    std::vector<double> result;
    double largest_norm = 0;
    while (trainer.steps_done() < options.steps) {
      const StepResult step = trainer.step();
      result.push_back(step.loss);
      result.push_back(step.grad_norm);
      largest_norm = std::max(largest_norm, step.grad_norm);
      EXPECT_EQ(step.traffic.sent, predicted.step.sent);
      EXPECT_EQ(step.forwards, options.accumulate);
    }
    EXPECT_GT(largest_norm, options.clip) << "clipping does something";
    EXPECT_LT(result[result.size() - 2], result[0] - 0.5) << "it learns";
    const HeldBytes held = trainer.parallel().held();
    EXPECT_EQ(held.parameters, predicted.ledger.parameters);
    EXPECT_EQ(held.gradients, predicted.ledger.gradients);
    EXPECT_EQ(held.optimizer, predicted.ledger.optimizer);
    EXPECT_EQ(held.transient, predicted.ledger.transient);
    for (const std::uint8_t byte : digest_weights(trainer.parallel()).weights) {
      result.push_back(byte);
    }
    return result;
  }

  void expect_the_result_of_its_kind(const Row& row, std::vector<double> result, int ranks) {
    const auto [known, is_new] = expected_.try_emplace(row[0], result);
    if (!is_new) {
      EXPECT_EQ(result, known->second) << ranks << " ranks\n" << to_toml(options_of(row));
    }
  }

  test::TemporaryFolder folder_;
  std::map<std::size_t, std::vector<double>> expected_;  // per kind
};

}  // namespace lockstep::train
