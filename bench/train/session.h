// Launches of training that alternate between modes, and what their times say.
#pragma once

#include "bench/common/statistics.h"
#include "bench/train/options.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

// One launch of one mode: medians over its steps without the first one, of rank 0.
struct Launch {
  Mode mode;
  std::int64_t round = 0;
  Spread step_ms;
  double forward_ms = 0;
  double backward_ms = 0;
  double update_ms = 0;
  std::optional<double> exposed_comm_ms;     // of ours
  std::optional<std::int64_t> collectives;   // of a step; of ours
  double tokens_per_s = 0;                   // of all ranks
  std::vector<double> losses;                // of rank 0, every step
  std::vector<double> mean_losses;           // of all ranks, every step
  std::vector<std::int64_t> resident_bytes;  // per process; see lockstep::train::resident_bytes()
  std::int64_t parameters = 0;
  std::string weights_sha256;  // of ours
};

// How many times as long `mode` takes as `yardstick`, over the rounds.
struct Comparison {
  std::string mode;
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

}  // namespace lockstep::bench
