#include "parallel/buffers.h"

#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

using test::append;
using test::run;
using test::values_of;

using Values = std::vector<double>;

ParallelOptions with(BufferPolicy policy) { return {.stage = Stage::ddp, .buffers = policy}; }

void expect_running_mean(BufferPolicy policy, double mean) {
  for (const Values& values : run(2, [policy](Group& group) {
         torch::nn::BatchNorm1d model(torch::nn::BatchNormOptions(1).momentum(0.1));
         Parallel parallel(model, group, with(policy));
         // Batch means 0 on rank 0 and 2 on rank 1.
         const auto x = torch::tensor({{-1.0f}, {1.0f}}) + 2.0f * static_cast<float>(group.rank());
         model(x).sum().backward();
         return Values{model->running_mean.item<double>(),
                       model->num_batches_tracked.item<double>()};
       })) {
    ASSERT_EQ(values.size(), 2u);
    EXPECT_FLOAT_EQ(static_cast<float>(values[0]), static_cast<float>(mean));
    EXPECT_EQ(values[1], 1);
  }
}

TEST(Buffers, A28_broadcast_takes_the_running_mean_of_rank_0) {
  expect_running_mean(BufferPolicy::broadcast, 0.0);
}
TEST(Buffers, A28_average_takes_the_mean_of_the_running_means) {
  expect_running_mean(BufferPolicy::average, 0.1);
}

// Buffers of several types that every leaf changes in its own way.
struct CountersImpl : torch::nn::Module {
  CountersImpl() {
    register_parameter("w", torch::ones({}));
    sum = register_buffer("sum", torch::zeros({2}));
    half = register_buffer("half", torch::zeros({}, torch::kBFloat16));
    calls = register_buffer("calls", torch::zeros({}, torch::kInt64));
    flag = register_buffer("flag", torch::zeros({3}, torch::kBool));
    table = register_buffer("table",
                            torch::tensor({0.1f, -std::numeric_limits<float>::infinity(), 1e-3f}));
  }
  torch::Tensor forward(std::int64_t leaf) {
    sum += static_cast<double>(leaf + 1);
    half += static_cast<double>(leaf);
    calls += leaf + 1;
    flag[leaf % 3] = true;
    return parameters_["w"] * static_cast<double>(leaf);
  }
  Values values() const {
    Values result;
    for (const torch::Tensor& buffer : buffers()) {
      append(result, values_of(buffer));
    }
    return result;
  }
  torch::Tensor sum, half, calls, flag, table;
};
TORCH_MODULE(Counters);

Values after_steps(int ranks, std::int64_t k, BufferPolicy policy, int steps) {
  const auto all = run(ranks, [&](Group& group) {
    Counters model;
    Parallel parallel(model, group, with(policy));
    for (int step = 0; step < steps; ++step) {
      for (const MicroStep& micro : parallel.micro_steps(k)) {
        model->forward(micro.leaf).backward();
      }
    }
    return model->values();
  });
  for (const Values& values : all) {
    EXPECT_EQ(values, all[0]);
  }
  return all.at(0);
}

TEST(Buffers, LeavesDecideWhateverTheirRankAndBroadcastKeepsTheFirst) {
  const Values table = values_of(Counters()->table);
  Values expected{2, 2, 0, 2, 1, 0, 0};  // two steps of leaf 0
  append(expected, table);
  for (const auto& [ranks, k] : {std::pair{1, 4}, {2, 2}, {4, 1}}) {
    EXPECT_EQ(after_steps(ranks, k, BufferPolicy::broadcast, 2), expected) << ranks;
  }
}

TEST(Buffers, LeavesDecideWhateverTheirRankAndAverageTakesTheirMean) {
  const Values table = values_of(Counters()->table);
  Values expected{5, 5, 3, 2, 1, 0, 0};  // 2.5 and 1.5 in each of two steps
  append(expected, table);
  for (const auto& [ranks, k] : {std::pair{1, 4}, {2, 2}, {4, 1}}) {
    EXPECT_EQ(after_steps(ranks, k, BufferPolicy::average, 2), expected) << ranks;
  }
}

TEST(Buffers, AveragingLeavesConstantsAloneForAnyNumberOfRanks) {
  const Values table = values_of(Counters()->table);
  const Values after = after_steps(3, 1, BufferPolicy::average, 50);
  EXPECT_EQ(Values(after.end() - 3, after.end()), table);
}

TEST(Buffers, HandWrittenLoopsLetBuffersRunOnAndExchangeAtTheEnd) {
  for (const Values& values : run(2, [](Group& group) {
         Counters model;
         Parallel parallel(model, group, with(BufferPolicy::average));
         {
           const auto accumulating = parallel.no_sync();
           model->forward(group.rank()).backward();
         }
         Values result = values_of(model->sum);
         model->forward(group.rank()).backward();
         append(result, values_of(model->sum));
         result.push_back(group.rank());
         return result;
       })) {
    const double own = values.back() + 1;
    EXPECT_EQ(Values(values.begin(), values.end() - 1), (Values{own, own, 3, 3}));
  }
}

TEST(Buffers, LoopThatAnExceptionEndedGivesThemBack) {
  Group group = Group::alone();
  Counters model;
  Parallel parallel(model, group, {.stage = Stage::single});
  try {
    for (const MicroStep& micro : parallel.micro_steps(2)) {
      model->forward(micro.leaf + 5).backward();
      throw std::runtime_error("the program's own");
    }
  } catch (const std::runtime_error&) {
  }
  for (const MicroStep& micro : parallel.micro_steps(1)) {
    model->forward(micro.leaf).backward();
  }
  EXPECT_EQ(values_of(model->sum), (Values{1, 1}));
}

// LibTorch's batch norm saves its running statistics for backward.
TEST(Buffers, SecondBackwardOfAnEarlierForwardStillRuns) {
  for (const Values& values : run(2, [](Group& group) {
         torch::nn::BatchNorm1d model(2);
         Parallel parallel(model, group, with(BufferPolicy::broadcast));
         const auto first = model(torch::randn({4, 2}));
         const auto second = model(torch::randn({4, 2}));
         first.pow(2).sum().backward();
         second.pow(2).sum().backward();
         return Values{static_cast<double>(model->weight.grad().isfinite().all().item<bool>())};
       })) {
    EXPECT_EQ(values, Values{1});
  }
}

}  // namespace
}  // namespace lockstep
