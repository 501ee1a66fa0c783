// Training and evaluation of the net on all ranks of a group.
#pragma once

#include "digits.h"
#include "lockstep/data.h"
#include "lockstep/parallel.h"
#include "net.h"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace mnist {

using Batch = torch::data::Example<>;  // data [images, 1, 28, 28], target [images]

struct Settings {
  int epochs = 2;
  std::int64_t batch = 64;       // images of a step, over all ranks
  std::int64_t training = 2003;  // images; neither of them divides by the ranks
  std::int64_t validation = 501;
  double learning_rate = 2e-3;
  double dropout = 0.5;
  std::uint64_t seed = 1;
  std::function<void(const Batch&)> on_batch = {};  // before this rank trains on it
};

struct Outcome {
  std::vector<double> losses;  // mean per image, by epoch
  double accuracy = 0;         // of the validation images, each counted once
};

inline double train_epoch(Net& net, lockstep::Group& world, lockstep::Parallel& parallel,
                          torch::optim::Optimizer& optimizer, auto& loader,
                          const Settings& settings) {
  net->train();
  lockstep::Average loss(world, "training loss");
  // Ranks whose images are used up stay in the loop with a weight of 0, so that a step's gradient
  // is the mean over its images also in the last batch, and no rank waits for another that has
  // left.
  for (const auto& batch : lockstep::joined(loader, world)) {
    const std::int64_t images = batch ? batch->data.size(0) : 0;
    for ([[maybe_unused]] const auto& micro : parallel.weighted_micro_steps({images})) {
      if (!batch) {
        continue;
      }
      if (settings.on_batch) {
        settings.on_batch(*batch);
      }
      const torch::Tensor sum =
          torch::cross_entropy_loss(net(batch->data), batch->target, {}, at::Reduction::Sum);
      sum.backward();
      loss.add(sum.item<double>(), images);
    }
    optimizer.step();
  }
  return loss.result();
}

inline double accuracy(Net& net, lockstep::Group& world, const Settings& settings) {
  const torch::NoGradGuard no_grad;
  net->eval();
  const lockstep::Sampler sampler(settings.validation, world, {.shuffle = false});
  auto loader = torch::data::make_data_loader(
      Digits(settings.training, settings.validation).map(torch::data::transforms::Stack<>()),
      sampler, 100);
  lockstep::Average correct(world, "accuracy");
  for (const Batch& batch : *loader) {
    correct.add(net(batch.data).argmax(1).eq(batch.target));
  }
  return correct.result();
}

// Returns what it reached, with the net that every rank then holds in `net`. Whatever a rank throws
// ends the step on all ranks: no exception is caught here, and no rank steps alone.
inline Outcome train(Net& net, lockstep::Group& world, const Settings& settings) {
  lockstep::Parallel parallel(net, world, {.seed = settings.seed});
  auto optimizer = parallel.adamw({.lr = settings.learning_rate});
  lockstep::Sampler sampler(settings.training, world, {.seed = settings.seed});
  auto loader = torch::data::make_data_loader(
      Digits(0, settings.training).map(torch::data::transforms::Stack<>()), sampler,
      static_cast<std::size_t>(settings.batch / world.size()));
  Outcome outcome;
  for (int epoch = 0; epoch < settings.epochs; ++epoch) {
    sampler.set_epoch(epoch);
    outcome.losses.push_back(train_epoch(net, world, parallel, optimizer, *loader, settings));
  }
  outcome.accuracy = accuracy(net, world, settings);
  return outcome;
}

}  // namespace mnist
