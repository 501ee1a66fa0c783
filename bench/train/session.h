// Launches of training that alternate between stages, and what their times say.
#pragma once

#include "bench/common/statistics.h"
#include "bench/train/options.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::bench {

// One launch of one stage: medians over its steps without the first one, of rank 0.
struct Launch {
  std::string stage;
  std::int64_t round = 0;
  Spread step_ms;
  double forward_ms = 0;
  double backward_ms = 0;
  double update_ms = 0;
  double exposed_comm_ms = 0;
  double tokens_per_s = 0;     // of all ranks
  std::vector<double> losses;  // of rank 0, every step
  std::vector<std::int64_t>
      resident_bytes;  // per rank; for PyTorch of its peak, shared pages whole
  std::int64_t parameters = 0;
  std::string weights_sha256;  // empty for PyTorch
};

// How many times as long `stage` takes as `yardstick`, over the rounds.
struct Comparison {
  std::string stage;
  std::string yardstick;
  Spread ratio;
};

struct Session {
  std::vector<Launch> launches;
  std::vector<Comparison> comparisons;
};

// Called after each launch.
using OnLaunch = std::function<void(const Launch&)>;

// Runs all launches, one after the other. Throws Error when one fails or when what they computed
// disagrees (see verify()).
Session measure(const TrainQuestion& question, const OnLaunch& on_launch);

// Throws Error unless all launches trained the same model: equal parameter counts, finite losses,
// the same bits in every launch of a stage and in the first loss of apart and ddp.
void verify(const std::vector<Launch>& launches);

// ddp against apart, and apart against PyTorch's, where both were launched.
std::vector<Comparison> compare(const std::vector<Launch>& launches);

}  // namespace lockstep::bench
