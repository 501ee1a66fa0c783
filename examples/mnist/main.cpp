// PyTorch's C++ MNIST example with MPI (pytorch/examples, cpp/distributed), ported: on as many
// ranks as the launcher starts.
//   lockstep launch -n 2 -- ./mnist
#include "training.h"

#include <cstdio>

int main() {
  try {
    lockstep::Group world = lockstep::Group::from_environment();
    const mnist::Settings settings;
    mnist::Net net(settings.dropout);
    const mnist::Outcome outcome = mnist::train(net, world, settings);
    if (world.rank() == 0) {
      for (std::size_t epoch = 0; epoch < outcome.losses.size(); ++epoch) {
        std::printf("epoch %zu: loss %.4f\n", epoch + 1, outcome.losses[epoch]);
      }
      std::printf("accuracy %.4f\n", outcome.accuracy);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mnist: %s\n", error.what());
    return 1;
  }
}
