#include "train/matmul_peak.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

namespace lockstep::train {
namespace {

constexpr std::int64_t kSize = 768;

// Products are counted whole: the window ends with the one that runs out of time.
double rate_of_window(torch::Tensor& product, const torch::Tensor& factor, double window_ms) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double seconds = 0;
  double products = 0;
  do {
    torch::mm_out(product, factor, factor);
    products += 1;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  } while (seconds * 1e3 < window_ms);
  return products * 2.0 * kSize * kSize * kSize / seconds;
}

}  // namespace

double matmul_peak(Group& group, const MatmulProbe& probe) {
  const torch::NoGradGuard no_gradients;
  const auto type = probe.bf16 ? torch::kBFloat16 : torch::kFloat32;
  const torch::Tensor factor = torch::ones({kSize, kSize}, type);
  torch::Tensor product = torch::mm(factor, factor);  // the first one sets up caches and buffers
  std::vector<double> rates;
  for (int window = 0; window < probe.windows; ++window) {
    group.barrier({.name = "matmul probe"});
    rates.push_back(rate_of_window(product, factor, probe.window_ms));
  }
  group.all_reduce(std::span(rates), {.name = "matmul rates"}).wait();
  return *std::ranges::max_element(rates);
}

}  // namespace lockstep::train
