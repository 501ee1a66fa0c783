// The promise of the same bits: whatever the number of ranks, the buckets and the overlap.
#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::append;
using test::Perceptron;
using test::run;
using test::values_of;

using Values = std::vector<double>;

struct Run {
  int ranks;
  std::int64_t accumulate;
  ParallelOptions options;
};

// The weights, losses and norms of a few steps over a fixed grid of eight leaves.
Values train(Group& group, const Run& run) {
  torch::manual_seed(7);
  Perceptron model(40, 4, 0.1);
  Parallel parallel(model, group, run.options);
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  Values result;
  for (std::int64_t step = 0; step < 6; ++step) {
    Values losses;
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
  }
  return result;
}

Values train_everywhere(const Run& configuration) {
  const auto all =
      run(configuration.ranks, [&](Group& group) { return train(group, configuration); });
  for (const Values& values : all) {
    EXPECT_EQ(values, all[0]);
  }
  return all.at(0);
}

void expect_same_bits_for_any_number_of_ranks(const Precision& precision) {
  ParallelOptions options{.precision = precision, .reproducible = true, .seed = 3};
  options.stage = Stage::single;
  const Values one = train_everywhere({1, 8, options});
  options.stage = Stage::ddp;
  EXPECT_EQ(one, train_everywhere({2, 4, options}));
  EXPECT_EQ(one, train_everywhere({4, 2, options}));
  EXPECT_EQ(one, train_everywhere({8, 1, options}));
  EXPECT_LT(one.at(10), one.at(0));  // the last step's loss against the first's
}

TEST(Parallel, ReproducibleBitsForAnyNumberOfRanksF32) {
  expect_same_bits_for_any_number_of_ranks(Precision::f32());
}

TEST(Parallel, ReproducibleBitsForAnyNumberOfRanksBf16) {
  expect_same_bits_for_any_number_of_ranks(Precision::bf16_mixed(
      [](const std::string& name) { return name.find("norm") != std::string::npos; }));
}

TEST(Parallel, BucketsAndOverlapDoNotChangeBits) {
  const ParallelOptions base{.stage = Stage::ddp, .seed = 3};
  const Values expected = train_everywhere({3, 2, base});
  for (const double bucket_mb : {0.0, 0.005, 1.0}) {
    for (const bool overlap : {true, false}) {
      ParallelOptions options = base;
      options.bucket_mb = bucket_mb;
      options.overlap = overlap;
      EXPECT_EQ(expected, train_everywhere({3, 2, options})) << bucket_mb << " " << overlap;
    }
  }
}

TEST(Parallel, OverlapCompletesTheFirstBucketBeforeTheLastHook) {
  const auto overlapped_steps = [](bool overlap) {
    const auto all = run(2, [overlap](Group& group) {
      Perceptron model(200, 12);
      Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = 0.2, .overlap = overlap});
      AdamW optimizer = parallel.adamw();
      double count = 0;
      for (int step = 0; step < 20; ++step) {
        model(torch::ones({400, 200})).pow(2).mean().backward();
        optimizer.step();
        count += parallel.last_step().first_bucket_before_last_hook;
      }
      return Values{count};
    });
    return all[0].at(0);
  };
  EXPECT_GE(overlapped_steps(true), 10);
  EXPECT_EQ(overlapped_steps(false), 0);
}

}  // namespace
}  // namespace lockstep
