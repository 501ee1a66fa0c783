// Holds modules of any kind to the same bits on 1, 2 and 4 ranks of every stage, and to plain
// LibTorch.
#pragma once

#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::test {

// A module and the mean loss of one of its leaves, whose input hangs on `sample` alone.
struct Kind {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(std::int64_t sample)> loss;
  std::function<void(std::int64_t step)> before_step = [](std::int64_t) {};
};
struct NamedKind {
  std::string name;
  std::function<Kind()> make;
};

inline constexpr std::int64_t kLeaves = 4;  // of a step, on all ranks
inline constexpr std::int64_t kSteps = 4;
inline constexpr double kRate = 0.05;
inline constexpr double kMomentum = 0.9;

// Standard normal values that hang on `sample` and `shape` alone.
inline torch::Tensor input_of(std::int64_t sample, at::IntArrayRef shape) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(sample + 1));
  return torch::randn(shape, generator);
}

inline std::vector<double> state_of(const torch::nn::Module& module) {
  std::vector<double> result;
  for (const torch::Tensor& parameter : module.parameters()) {
    append(result, values_of(parameter));
  }
  for (const torch::Tensor& buffer : module.buffers()) {
    append(result, values_of(buffer));
  }
  return result;
}

// Weights and buffers after a few steps on `group`, then the losses and norms of each step.
inline std::vector<double> train_parallel(Group& group, const NamedKind& named, BufferPolicy policy,
                                          Stage stage) {
  torch::manual_seed(7);
  Kind kind = named.make();
  Parallel parallel(
      kind.module, group,
      {.stage = stage, .buffers = policy, .bucket_mb = 0.001, .reproducible = true, .seed = 5});
  SGD optimizer = parallel.sgd({.lr = kRate, .momentum = kMomentum});
  std::vector<double> records;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    std::vector<double> losses;
    kind.before_step(step);
    for (const MicroStep& micro : parallel.micro_steps(kLeaves / group.size())) {
      const torch::Tensor loss = kind.loss(step * kLeaves + micro.leaf);
      losses.push_back(loss.item<double>());
      loss.backward();
    }
    records.push_back(parallel.mean_loss(losses));
    records.push_back(parallel.grad_norm());
    optimizer.step();
  }
  std::vector<double> result = state_of(*kind.module);
  append(result, records);
  return result;
}

// LibTorch lists a tied parameter by each of its names, and would update it as often.
inline std::vector<torch::Tensor> each_once(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> once;
  for (const torch::Tensor& parameter : parameters) {
    if (std::ranges::none_of(once, [&](const auto& other) { return other.is_same(parameter); })) {
      once.push_back(parameter);
    }
  }
  return once;
}

// The same in a loop of LibTorch alone: each leaf starts from the step's buffers, and the step ends
// with their mean (whole numbers: the first leaf's).
inline std::vector<double> train_plainly(const NamedKind& named) {
  torch::manual_seed(7);
  Kind kind = named.make();
  torch::optim::SGD optimizer(each_once(kind.module->parameters()),
                              torch::optim::SGDOptions(kRate).momentum(kMomentum));
  const std::vector<torch::Tensor> buffers = kind.module->buffers();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    kind.before_step(step);
    std::vector<torch::Tensor> first;
    for (const torch::Tensor& buffer : buffers) {
      first.push_back(buffer.clone());
    }
    std::vector<torch::Tensor> ends(buffers.size());
    for (std::int64_t leaf = 0; leaf < kLeaves; ++leaf) {
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        buffers[i].variable_data().copy_(first[i]);
      }
      (kind.loss(step * kLeaves + leaf) / static_cast<double>(kLeaves)).backward();
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (leaf == 0) {
          ends[i] = buffers[i].clone();
        } else if (buffers[i].is_floating_point()) {
          ends[i] += buffers[i];
        }
      }
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const bool averages = buffers[i].is_floating_point();
      buffers[i].variable_data().copy_(averages ? ends[i] / static_cast<double>(kLeaves) : ends[i]);
    }
    optimizer.step();
  }
  return state_of(*kind.module);
}

inline std::vector<double> on_ranks(int ranks, const NamedKind& kind, BufferPolicy policy,
                                    Stage stage) {
  const auto all =
      run(ranks, [&](Group& group) { return train_parallel(group, kind, policy, stage); });
  for (const auto& values : all) {
    EXPECT_EQ(values, all[0]) << kind.name << " differs between " << ranks << " ranks";
  }
  return all.at(0);
}

inline void expect_equal_on_any_ranks_and_near_plain_torch(const NamedKind& kind) {
  for (const BufferPolicy policy : {BufferPolicy::broadcast, BufferPolicy::average}) {
    const std::vector<double> one = on_ranks(1, kind, policy, Stage::single);
    for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
      for (const int ranks : {2, 4}) {
        EXPECT_EQ(on_ranks(ranks, kind, policy, stage), one) << kind.name << " " << name_of(stage);
      }
    }
    if (policy == BufferPolicy::average) {
      const auto plain = run(1, [&](Group&) { return train_plainly(kind); }).at(0);
      ASSERT_LT(plain.size(), one.size());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        ASSERT_NEAR(one[i], plain[i], 1e-6 * std::max(1.0, std::abs(plain[i])))
            << kind.name << " at " << i;
      }
    }
  }
}

}  // namespace lockstep::test
