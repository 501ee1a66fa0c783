// A generative adversarial network (Goodfellow et al. 2014) on as many ranks as the launcher
// starts:
//   lockstep launch -n 2 -- ./gan
// Two models that train against each other are two Parallels, each on a group of its own.
#include "lockstep/parallel.h"

#include <torch/torch.h>

#include <cstdio>

namespace {

constexpr std::int64_t kBatch = 64;  // numbers of one rank in a step
constexpr std::int64_t kNoise = 4;

torch::nn::Sequential perceptron(std::int64_t inputs) {
  return torch::nn::Sequential(torch::nn::Linear(inputs, 32), torch::nn::GELU(),
                               torch::nn::Linear(32, 1));
}

// What is to be imitated: a normal distribution around 4.
torch::Tensor real() { return 4 + 0.5 * torch::randn({kBatch, 1}); }

torch::Tensor loss(const torch::Tensor& logits, double truth) {
  return torch::binary_cross_entropy_with_logits(logits, torch::full_like(logits, truth));
}

}  // namespace

int main() {
  lockstep::Group world = lockstep::Group::from_environment();
  lockstep::Group second = *world.split(0, world.rank());
  torch::manual_seed(1);
  auto generator = perceptron(kNoise);
  auto critic = perceptron(1);
  lockstep::Parallel generating(generator, world, {.seed = 1});
  lockstep::Parallel judging(critic, second, {.seed = 2});
  auto generator_optimizer = generating.adamw({.lr = 1e-3, .beta1 = 0.5});
  auto critic_optimizer = judging.adamw({.lr = 1e-3, .beta1 = 0.5});

  for (int step = 1; step <= 1500; ++step) {
    for ([[maybe_unused]] const auto& micro : judging.micro_steps()) {
      const torch::Tensor made = generator->forward(torch::randn({kBatch, kNoise})).detach();
      (loss(critic->forward(real()), 1) + loss(critic->forward(made), 0)).backward();
    }
    critic_optimizer.step();

    for ([[maybe_unused]] const auto& micro : generating.micro_steps()) {
      // The generator learns through the critic, whose own gradients are not wanted here.
      const auto local = judging.no_sync();
      const torch::Tensor made = generator->forward(torch::randn({kBatch, kNoise}));
      loss(critic->forward(made), 1).backward();
    }
    critic_optimizer.zero_grad();
    generator_optimizer.step();
  }

  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  const torch::Tensor made = generator->forward(torch::randn({4096, kNoise}));
  std::printf("rank %d: mean %.4f, deviation %.4f\n", world.rank(), made.mean().item<double>(),
              made.std().item<double>());
}
