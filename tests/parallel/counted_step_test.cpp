// What a training step moves: by the kernels' byte arguments, by Group::traffic(), by the plan.
#include "lockstep/parallel.h"
#include "lockstep/plan.h"
#include "optim/norm.h"
#include "parallel/device.h"
#include "parallel/parameters.h"
#include "parallel/single_threaded_ranks.h"
#include "parallel/unit_blocks.h"
#include "parallel/units.h"
#include "support/counted_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

using Values = std::vector<double>;

struct CountedBlockImpl : torch::nn::Module {
  CountedBlockImpl() { linear = register_module("linear", torch::nn::Linear(8, 8)); }
  torch::Tensor forward(const torch::Tensor& x) { return linear(x); }
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(CountedBlock);

struct CountedNetImpl : test::UnitBlocks<CountedBlock> {
  torch::Tensor forward(torch::Tensor x) {
    x = first(x);
    for (auto& block : blocks) {
      x = torch::gelu(block(x.to(block->linear->weight.scalar_type())));
    }
    return x;
  }
};
TORCH_MODULE(CountedNet);

struct Case {
  Stage stage;
  Precision precision = Precision::f32();
  bool share_parameters = false;
  bool accumulate_in_full = false;
  bool reshard = false;
  double bucket_mb = 25;
};

std::vector<plan::Parameter> planned(const torch::nn::Module& module, const Precision& precision) {
  std::vector<plan::Parameter> result;
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parallel::trainable_parameters(module, precision)) {
    tensors.push_back(parameter.tensor);
    result.push_back(
        {.elements = parameter.tensor.numel(), .dtype = parallel::dtype_of(parameter.held_as)});
  }
  const std::vector<std::size_t> units = parallel::units_of(module, tensors);
  for (std::size_t i = 0; i < units.size(); ++i) {
    result[i].unit = units[i];
  }
  return result;
}

void step(CountedNet& net, Parallel& parallel, FlatOptimizer& optimizer, std::int64_t k) {
  std::vector<double> losses;
  const torch::Tensor x = torch::ones({4, 8}).to(net->first->weight.scalar_type());
  for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps(k)) {
    const torch::Tensor loss = net(x).pow(2).mean();
    losses.push_back(loss.item<double>());
    loss.backward();
  }
  parallel.clip_grad_norm(1.0);
  optimizer.step();
  parallel.mean_loss(losses);
}

void expect_equal_counts(Group& group, const Case& one, std::int64_t k) {
  ParallelOptions options{.stage = one.stage, .precision = one.precision};
  options.share_parameters = one.share_parameters;
  options.accumulate_in = one.accumulate_in_full ? AccumulateIn::full : AccumulateIn::shard;
  options.reshard = one.reshard ? Reshard::always : Reshard::never;
  options.bucket_mb = one.bucket_mb;
  CountedNet net;
  const std::vector<plan::Parameter> parameters = planned(*net, one.precision);
  const plan::Training training{.stage = one.stage,
                                .ranks = group.size(),
                                .micro_batches = k,
                                .accumulate_in_shard = !one.accumulate_in_full,
                                .share_parameters = one.share_parameters,
                                .bucket_mb = one.bucket_mb};
  const plan::SmallCollectives small{
      .decision_elements = optim::ExactSum::kDigits + 1 +
                           static_cast<std::int64_t>(parameters.size()) + (one.reshard ? 2 : 0),
      .losses = k};
  Parallel parallel(net, group, options);
  AdamW optimizer = parallel.adamw({.lr = 0.1});
  step(net, parallel, optimizer, k);  // allocates
  const Traffic before = group.traffic();
  std::int64_t read = 0;
  std::int64_t written = 0;
  {
    const test::CountedBytes counted(group.rank(), group.size());
    step(net, parallel, optimizer, k);
    read = counted.read();
    written = counted.written();
  }
  const Traffic expected = plan::step_traffic(parameters, training, group.rank(), small);
  EXPECT_EQ(read, expected.received) << name_of(one.stage) << k;
  EXPECT_EQ(written, expected.sent) << name_of(one.stage) << k;
  EXPECT_EQ(group.traffic().received - before.received, read) << name_of(one.stage) << k;
  EXPECT_EQ(group.traffic().sent - before.sent, written) << name_of(one.stage) << k;
  EXPECT_EQ(read > 0, group.size() > 1);
}

TEST(CountedStep, IsWhatGroupAndPlanSay) {
  const Precision mixed = Precision::bf16_mixed(
      [](const std::string& name) { return name.find("block1") != std::string::npos; });
  std::vector<Case> cases;
  for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
    cases.push_back({.stage = stage});
    cases.push_back({.stage = stage, .precision = mixed});
    cases.push_back({.stage = stage, .share_parameters = true});
    cases.push_back({.stage = stage, .accumulate_in_full = true});
    cases.push_back({.stage = stage, .bucket_mb = 0});
  }
  cases.push_back({.stage = Stage::zero3, .reshard = true});
  for (const int ranks : {1, 2, 3}) {
    test::run(ranks, [&](Group& group) -> Values {
      for (const Case& one : cases) {
        for (const std::int64_t k : {1, 2}) {
          expect_equal_counts(group, one, k);
        }
      }
      return {};
    });
  }
}

}  // namespace
}  // namespace lockstep
