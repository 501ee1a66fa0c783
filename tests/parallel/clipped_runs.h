// Training with clipping and dropout over a fixed grid of leaves, for tests of equal bits.
#pragma once

#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace lockstep::test {

struct ClippedRun {
  int ranks;
  std::int64_t accumulate;  // with the ranks at most 8 leaves
  ParallelOptions options;
};

inline constexpr std::int64_t kClippedSteps = 6;

// The loss and norm of each step, then each weight in full precision and as it is held.
inline std::vector<double> train_clipped(Group& group, const ClippedRun& run) {
  torch::manual_seed(7);
  Perceptron model(40, 4, 0.1);
  Parallel parallel(model, group, run.options);
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  std::vector<double> result;
  for (std::int64_t step = 0; step < kClippedSteps; ++step) {
    std::vector<double> losses;
    for (const MicroStep& micro : parallel.micro_steps(run.accumulate)) {
      auto generator =
          at::detail::createCPUGenerator(static_cast<std::uint64_t>(step * 8 + micro.leaf + 1));
      const auto dtype = model->linears[0]->weight.scalar_type();
      const torch::Tensor x = torch::randn({3, 40}, generator).to(dtype);
      const torch::Tensor loss = (model(x) - 1).pow(2).mean();
      losses.push_back(loss.item<double>());
      loss.backward();
    }
    result.push_back(parallel.mean_loss(losses));
    result.push_back(parallel.clip_grad_norm(0.5));
    optimizer.step();
  }
  for (const auto& item : model->named_parameters()) {
    append(result, values_of(parallel.full_parameter(item.key())));
    append(result, values_of(item.value()));
  }
  return result;
}

// What every rank came to.
inline std::vector<double> train_everywhere(const ClippedRun& configuration) {
  const auto all =
      run(configuration.ranks, [&](Group& group) { return train_clipped(group, configuration); });
  for (const std::vector<double>& values : all) {
    EXPECT_EQ(values, all[0]);
  }
  return all.at(0);
}

}  // namespace lockstep::test
