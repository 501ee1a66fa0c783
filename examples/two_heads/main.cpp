// A module of one's own with several outputs, on as many ranks as the launcher starts:
//   lockstep launch -n 2 -- ./two_heads
// One head classifies a wave, the other estimates its frequency. The second one learns in every
// other step only: a parameter without a gradient needs no flag, it is left alone in that step.
#include "lockstep/data.h"
#include "lockstep/parallel.h"

#include <torch/torch.h>

#include <cmath>
#include <cstdio>

namespace {

constexpr std::int64_t kLength = 32;  // samples of one wave
constexpr std::int64_t kBatch = 32;   // waves of one rank in a step

struct Reading {
  torch::Tensor shapes;       // [waves, 2]: logits of sine and square
  torch::Tensor frequencies;  // [waves]
};

struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() {
    body = register_module("body", torch::nn::Linear(kLength, 64));
    shape = register_module("shape", torch::nn::Linear(64, 2));
    frequency = register_module("frequency", torch::nn::Linear(64, 1));
  }
  Reading forward(const torch::Tensor& waves) {  // [waves, kLength]
    const torch::Tensor features = torch::gelu(body(waves));
    return {shape(features), frequency(features).squeeze(1)};
  }
  torch::nn::Linear body{nullptr};
  torch::nn::Linear shape{nullptr};
  torch::nn::Linear frequency{nullptr};
};
TORCH_MODULE(TwoHeads);

struct Waves {
  torch::Tensor values;       // [kBatch, kLength]
  torch::Tensor shapes;       // [kBatch]
  torch::Tensor frequencies;  // [kBatch], 1 … 3 turns
};

// Inside micro_steps() the generator hangs on the step and the micro-batch, so ranks draw different
// waves.
Waves draw() {
  Waves waves;
  waves.shapes = torch::randint(2, {kBatch}, torch::kInt64);
  waves.frequencies = 1 + 2 * torch::rand({kBatch});
  const torch::Tensor time = torch::linspace(0, 2 * M_PI, kLength);
  const torch::Tensor sine = torch::outer(waves.frequencies, time).sin();
  waves.values = torch::where(waves.shapes.unsqueeze(1) == 0, sine, sine.sign());
  return waves;
}

}  // namespace

int main() {
  lockstep::Group world = lockstep::Group::from_environment();
  TwoHeads model;
  lockstep::Parallel parallel(model, world, {.seed = 1});
  auto optimizer = parallel.adamw({.lr = 2e-3});
  lockstep::Average shape_loss(world);
  lockstep::Average frequency_loss(world);
  for (int step = 1; step <= 400; ++step) {
    for ([[maybe_unused]] const auto& micro : parallel.micro_steps()) {
      const Waves waves = draw();
      const Reading reading = model(waves.values);
      const torch::Tensor shape = torch::cross_entropy_loss(reading.shapes, waves.shapes);
      const torch::Tensor frequency = torch::mse_loss(reading.frequencies, waves.frequencies);
      (step % 2 == 0 ? shape + frequency : shape).backward();
      shape_loss.add(shape.item<double>(), 1);
      frequency_loss.add(frequency.item<double>(), 1);
    }
    optimizer.step();
    if (step % 100 == 0) {
      const double shape = shape_loss.result();
      const double frequency = frequency_loss.result();
      if (world.rank() == 0) {
        std::printf("step %d: shape %.3f, frequency %.3f\n", step, shape, frequency);
      }
    }
  }
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  const Waves waves = draw();
  const double frequency =
      torch::mse_loss(model(waves.values).frequencies, waves.frequencies).item<double>();
  std::printf("rank %d: frequency %.6f\n", world.rank(), frequency);
}
