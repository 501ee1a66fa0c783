// The engine against a device that runs its kernels late: the bits of the CPU device, and different
// ones (or an error) as soon as one ordering call is ignored.
#include "parallel/engine.h"

#include "parallel/modules.h"
#include "parallel/queued_device.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace lockstep {
namespace {

using test::append;
using test::Ignored;
using test::Perceptron;
using test::QueuedDevice;
using Values = std::vector<double>;

// Four steps of two micro-batches with clipping; `before_forward` runs what a program's own
// operations on the device would wait for.
Values train(Group& group, Stage stage, std::unique_ptr<parallel::Device> device,
             const std::function<void()>& before_forward) {
  at::set_num_threads(1);
  torch::manual_seed(5);
  Perceptron model(24, 3);
  const ParallelOptions options{.stage = group.size() == 1 ? Stage::single : stage,
                                .precision = Precision::bf16_mixed(),
                                .bucket_mb = 0.001};
  parallel::Engine engine(model.ptr(), group, options, std::move(device));
  AdamW optimizer(engine, {.lr = 0.05});
  Values result;
  for (int step = 0; step < 4; ++step) {
    for (MicroStep micro = engine.begin_micro_steps(2, 2 * engine.ranks()); micro.index < 2;
         micro = engine.next_micro_step(micro, 2)) {
      before_forward();
      const auto x = torch::full({2, 24}, 0.1 * static_cast<double>(micro.leaf + 1));
      model(x.to(torch::kBFloat16)).to(torch::kFloat32).sub(1).pow(2).mean().backward();
    }
    result.push_back(engine.clip_grad_norm(0.5));
    optimizer.step();
  }
  for (const auto& item : model->named_parameters()) {
    append(result, test::values_of(engine.full_parameter(item.key()).clone()));
  }
  return result;
}

std::vector<test::RankResult> train_queued(int ranks, Stage stage, Ignored ignored) {
  return test::run_ranks(ranks,
                         [ignored, stage](Group& group) {
                           auto device = std::make_unique<QueuedDevice>(ignored);
                           QueuedDevice* queued = device.get();
                           return train(group, stage, std::move(device),
                                        [queued] { queued->drain(); });
                         },
                         {.deadline = std::chrono::seconds(10)});
}

std::vector<test::RankResult> train_on_cpu(int ranks, Stage stage) {
  return test::run_ranks(ranks, [stage](Group& group) {
    return train(group, stage, parallel::make_cpu_device(), [] {});
  });
}

constexpr std::array kStages{Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3};

TEST(Engine, AsynchronousDeviceGivesTheBitsOfTheCpu) {
  for (const auto& [ranks, stage] : {std::pair{1, Stage::single},
                                     {2, Stage::ddp},
                                     {2, Stage::zero1},
                                     {2, Stage::zero2},
                                     {2, Stage::zero3}}) {
    const auto expected = train_on_cpu(ranks, stage);
    const auto actual = train_queued(ranks, stage, Ignored::nothing);
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_EQ(actual[rank].error, "");
      EXPECT_EQ(actual[rank].values, expected[rank].values);
      EXPECT_FALSE(expected[rank].values.empty());
    }
  }
}

void expect_wrong(Ignored ignored) {
  for (const Stage stage : kStages) {
    const auto expected = train_on_cpu(2, stage);
    const auto actual = train_queued(2, stage, ignored);
    EXPECT_TRUE(actual[0].error != "" || actual[0].values != expected[0].values) << name_of(stage);
  }
}

TEST(Engine, AsksThatCommunicationFollowsCompute) {
  expect_wrong(Ignored::communication_follows_compute);
}
TEST(Engine, AsksThatComputeFollowsCommunication) { expect_wrong(Ignored::compute_follows); }
TEST(Engine, AsksThatTheHostFollowsCompute) { expect_wrong(Ignored::host_follows_compute); }

}  // namespace
}  // namespace lockstep
