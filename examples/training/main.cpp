// Fits a line on as many ranks as the launcher starts: lockstep launch -n 2 -- ./training
#include "lockstep/parallel.h"

#include <torch/torch.h>

#include <cstdio>

namespace {

// Points of y = 3x + 1 that only this rank sees.
torch::data::Example<> points_of(int rank) {
  const torch::Tensor x = torch::linspace(rank, rank + 1, 32).unsqueeze(1);  // [32, 1]
  return {x, 3 * x + 1};
}

}  // namespace

int main() {
  lockstep::Group world = lockstep::Group::from_environment();
  torch::manual_seed(1);  // LibTorch's own seed differs from run to run
  torch::nn::Linear model(1, 1);
  lockstep::Parallel parallel(model, world, {.stage = lockstep::Stage::ddp});
  auto optimizer = parallel.adamw({.lr = 0.1, .weight_decay = 0});
  const torch::data::Example<> batch = points_of(world.rank());
  for (int step = 0; step < 300; ++step) {
    for (auto& micro : parallel.micro_batches(batch, 2)) {
      torch::mse_loss(model(micro.data), micro.target).backward();
    }
    parallel.clip_grad_norm(10.0);
    optimizer.step();
  }
  std::printf("y = %.2f x + %.2f\n", model->weight.item<double>(), model->bias.item<double>());
}
