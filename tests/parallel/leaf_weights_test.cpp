#include "parallel/leaf_weights.h"

#include "lockstep/data.h"
#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

using test::append;
using test::Parameters;
using test::Perceptron;
using test::RankResult;
using test::run;
using test::run_ranks;
using test::Shapes;
using test::values_of;

using Values = std::vector<double>;
using Weights = std::vector<std::int64_t>;

// --- agreeing on the total ----------------------------------------------------------------------

TEST(LeafWeights, AddOverRanks) {
  for (const Values& values : run(3, [](Group& group) {
         const Weights weights{group.rank(), 2};
         return Values{static_cast<double>(parallel::total_weight(group, weights))};
       })) {
    EXPECT_EQ(values, Values{9});
  }
}

// What one rank gave wrong must not leave the others waiting.
void expect_error_on_all_ranks(const std::vector<Weights>& of_rank, const std::string& text) {
  const auto results = run_ranks(static_cast<int>(of_rank.size()), [&](Group& group) {
    parallel::total_weight(group, of_rank[static_cast<std::size_t>(group.rank())]);
    return Values{};
  });
  for (const RankResult& result : results) {
    EXPECT_NE(result.error.find(text), std::string::npos) << result.error;
  }
}

TEST(LeafWeights, FaultsAreErrorsOnEveryRank) {
  expect_error_on_all_ranks({{1, 1}, {1}}, "rank 0 has 2, rank 1 has 1");
  expect_error_on_all_ranks({{1, 1}, {3, -2}}, "expected ≥ 0, got -2 on rank 1");
  expect_error_on_all_ranks({{0}, {0}}, "all of them are 0 on all ranks");
  expect_error_on_all_ranks({{}, {}}, "all of them are 0 on all ranks");
}

// --- the gradient -------------------------------------------------------------------------------

// Per-token coefficients [4] and [1, 1, 1]: the mean over tokens is 7/4, the mean of means 2.5.
TEST(WeightedMicroSteps, A15_mean_over_tokens_of_micro_batches) {
  for (const Values& values : run(1, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, {.stage = Stage::single});
         const std::vector<torch::Tensor> tokens{torch::tensor({4.0f}),
                                                 torch::tensor({1.0f, 1.0f, 1.0f})};
         for (const MicroStep& micro : parallel.weighted_micro_steps({1, 3})) {
           const torch::Tensor& mine = tokens.at(static_cast<std::size_t>(micro.index));
           ((model["w"] * mine).mean() * micro.weight).backward();
         }
         return values_of(model["w"].grad());
       })) {
    EXPECT_EQ(values, Values{1.75});
  }
}

TEST(WeightedMicroSteps, A15_mean_over_tokens_of_ranks) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}}, 1.0);
         Parallel parallel(model, group, {.stage = Stage::ddp});
         const torch::Tensor tokens =
             group.rank() == 0 ? torch::tensor({4.0f}) : torch::tensor({1.0f, 1.0f, 1.0f});
         auto leaves = parallel.weighted_micro_steps({tokens.numel()});
         Values sums;
         for (const MicroStep& micro : leaves) {
           const torch::Tensor loss = (model["w"] * tokens).sum();
           sums.push_back(loss.item<double>() + 0.0 * static_cast<double>(micro.leaf));
           loss.backward();
         }
         Values result = values_of(model["w"].grad());
         result.push_back(parallel.mean_loss(sums, leaves.total_weight()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.75, 1.75}));
  }
}

// Weights and losses after a few steps over eight leaves of 0 to 7 tokens.
Values train_weighted(Group& group, const ParallelOptions& options) {
  torch::manual_seed(7);
  Perceptron model(40, 4, 0.1);
  Parallel parallel(model, group, options);
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  const std::int64_t k = 8 / group.size();
  Values result;
  for (std::int64_t step = 0; step < 4; ++step) {
    Weights tokens;
    for (std::int64_t leaf = group.rank() * k; leaf < (group.rank() + 1) * k; ++leaf) {
      tokens.push_back((leaf * 3 + step) % 8);
    }
    auto leaves = parallel.weighted_micro_steps(tokens);
    Values sums;
    for (const MicroStep& micro : leaves) {
      auto generator =
          at::detail::createCPUGenerator(static_cast<std::uint64_t>(step * 8 + micro.leaf + 1));
      const auto dtype = model->linears[0]->weight.scalar_type();
      const torch::Tensor x = torch::randn({micro.weight, 40}, generator).to(dtype);
      const torch::Tensor loss =
          micro.weight > 0 ? (model(x) - 1).pow(2).mean(1).sum() : torch::zeros({});
      sums.push_back(loss.item<double>());
      if (micro.weight > 0) {
        loss.backward();
      }
    }
    result.push_back(parallel.mean_loss(sums, leaves.total_weight()));
    result.push_back(parallel.clip_grad_norm(0.5));
    optimizer.step();
  }
  for (const auto& item : model->named_parameters()) {
    append(result, values_of(parallel.full_parameter(item.key())));
  }
  return result;
}

void expect_same_bits_for_any_number_of_ranks(const Precision& precision) {
  const auto of = [&](int ranks) {
    const Stage stage = ranks == 1 ? Stage::single : Stage::ddp;
    const auto all = run(ranks, [&](Group& group) {
      return train_weighted(
          group, {.stage = stage, .precision = precision, .reproducible = true, .seed = 3});
    });
    for (const Values& values : all) {
      EXPECT_EQ(values, all[0]);
    }
    return all[0];
  };
  const Values one = of(1);
  EXPECT_EQ(one, of(2));
  EXPECT_EQ(one, of(4));
  EXPECT_LT(one.at(6), one.at(0));
}

TEST(WeightedMicroSteps, SameBitsForAnyNumberOfRanksF32) {
  expect_same_bits_for_any_number_of_ranks(Precision::f32());
}

TEST(WeightedMicroSteps, SameBitsForAnyNumberOfRanksBf16) {
  expect_same_bits_for_any_number_of_ranks(Precision::bf16_mixed(
      [](const std::string& name) { return name.find("norm") != std::string::npos; }));
}

// --- uneven data --------------------------------------------------------------------------------

// Two epochs over 11 samples in batches of 4 / P, each step the mean over its samples.
Values train_uneven(Group& group) {
  torch::manual_seed(7);
  Perceptron model(8, 2);
  Parallel parallel(model, group, {.stage = Stage::ddp});
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  const auto x = torch::randn({11, 8}, at::detail::createCPUGenerator(5));
  Sampler sampler(11, group, {.seed = 1});
  auto loader = torch::data::make_data_loader(
      torch::data::datasets::TensorDataset(x).map(
          torch::data::transforms::Stack<torch::data::TensorExample>()),
      sampler, static_cast<std::size_t>(4 / group.size()));
  double steps = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : joined(*loader, group)) {
      const std::int64_t samples = batch ? batch->data.size(0) : 0;
      for (const MicroStep& micro : parallel.weighted_micro_steps({samples})) {
        if (micro.weight > 0) {
          (model(batch->data) - 1).pow(2).mean(1).sum().backward();
        }
      }
      optimizer.step();
      ++steps;
    }
  }
  Values result{steps};
  for (const auto& item : model->named_parameters()) {
    append(result, values_of(item.value()));
  }
  return result;
}

TEST(UnevenData, EqualsOneProcessOnTheSameSamples) {
  const Values one = run(1, train_uneven).at(0);
  EXPECT_EQ(one.at(0), 6.0);
  for (const int ranks : {2, 4}) {  // with 4, the epoch's last batch leaves rank 3 without data
    const auto all = run(ranks, train_uneven);
    for (const Values& values : all) {
      EXPECT_EQ(values, all[0]);
    }
    ASSERT_EQ(all[0].size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      // AdamW divides by small gradients, so one rounding grows; a mean over ranks is 1e-3 away.
      EXPECT_NEAR(all[0][i], one[i], 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
