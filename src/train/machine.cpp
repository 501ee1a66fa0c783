#include "train/machine.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sched.h>
#include <utility>

namespace lockstep::train {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

int available_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

std::string command_line() {
  std::ifstream words("/proc/self/cmdline");
  std::string text = "lockstep";
  bool program = true;
  for (std::string word; std::getline(words, word, '\0');) {
    text += std::exchange(program, false) ? "" : " " + word;
  }
  return text;
}

double matmul_peak(const MatmulProbe& probe) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kSize = 768;
  const torch::NoGradGuard no_gradients;
  const auto type = probe.bf16 ? torch::kBFloat16 : torch::kFloat32;
  const torch::Tensor left = torch::ones({kSize, kSize}, type);
  const torch::Tensor right = torch::ones({kSize, kSize}, type);
  torch::Tensor product = torch::mm(left, right);  // the first one sets up caches and buffers
  double best_s = 1e9;
  const auto start = Clock::now();
  do {
    const auto before = Clock::now();
    torch::mm_out(product, left, right);
    best_s = std::min(best_s, std::chrono::duration<double>(Clock::now() - before).count());
  } while (std::chrono::duration<double, std::milli>(Clock::now() - start).count() <
           probe.limit_ms);
  return 2.0 * kSize * kSize * kSize / best_s;
}

}  // namespace lockstep::train
