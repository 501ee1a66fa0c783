#include "bench/train/verify.h"

#include "lockstep/error.h"

#include <algorithm>
#include <cmath>

namespace lockstep::bench {
namespace {

bool is_ours(const Launch& launch) { return !is_peer(launch.mode); }

[[noreturn]] void refuse(const Launch& one, const Launch& other, const std::string& what) {
  throw Error("launches disagree: " + what + " of " + one.mode.name + " in round " +
              std::to_string(one.round + 1) + " and of " + other.mode.name + " in round " +
              std::to_string(other.round + 1) + " differ; their times can't be compared");
}

void check_finite(const Launch& launch) {
  for (const auto* losses : {&launch.losses, &launch.mean_losses}) {
    if (!std::ranges::all_of(*losses, [](double loss) { return std::isfinite(loss); })) {
      throw Error(launch.mode.name + ": a loss is not finite; its times mean nothing");
    }
  }
}

// Rounding apart: in another order of addition, or in 16 bits in other places.
bool nearly_equal(double one, double other, bool sixteen_bits) {
  return std::abs(one - other) <= (sixteen_bits ? 2e-2 : 1e-3) * std::abs(one);
}

void check_mean_losses(const Launch& one, const Launch& other, std::size_t steps,
                       bool sixteen_bits) {
  for (std::size_t step = 0; step < std::min(steps, one.mean_losses.size()); ++step) {
    if (!nearly_equal(one.mean_losses[step], other.mean_losses.at(step), sixteen_bits)) {
      refuse(one, other, "mean losses of step " + std::to_string(step + 1));
    }
  }
}

// The first launch that `like` says yes to; nullptr where none is.
template <class Like>
const Launch* first_of(const std::vector<Launch>& launches, Like like) {
  const auto found = std::ranges::find_if(launches, like);
  return found == launches.end() ? nullptr : &*found;
}

void verify_ours(const std::vector<Launch>& launches, const Launch& launch, bool sixteen_bits) {
  const auto is_alike = [&](const Launch& other) {
    return is_ours(other) && (is_data_parallel(launch.mode) ? is_data_parallel(other.mode)
                                                            : other.mode.name == launch.mode.name);
  };
  const Launch& same = *first_of(launches, is_alike);
  if (launch.losses != same.losses || launch.weights_sha256 != same.weights_sha256) {
    refuse(same, launch, "losses or weights");
  }
  if (launch.mode.kind == Kind::threads) {
    const Launch* parallel = first_of(launches, [](const Launch& other) {
      return is_ours(other) && is_data_parallel(other.mode);
    });
    if (parallel != nullptr) {
      check_mean_losses(*parallel, launch, launch.mean_losses.size(), sixteen_bits);
    }
    return;
  }
  const Launch& first = *first_of(launches, [](const Launch& other) {
    return is_ours(other) && other.mode.kind != Kind::threads;
  });
  if (launch.losses.front() != first.losses.front()) {
    refuse(first, launch, "first losses");
  }
}

void verify_peer(const std::vector<Launch>& launches, const Launch& launch, bool sixteen_bits) {
  const Launch& first = *first_of(launches, [](const Launch& other) { return !is_ours(other); });
  check_mean_losses(first, launch, 1, sixteen_bits);
  if (is_data_parallel(launch.mode) && !sixteen_bits) {
    const Launch& parallel = *first_of(launches, [](const Launch& other) {
      return !is_ours(other) && is_data_parallel(other.mode);
    });
    check_mean_losses(parallel, launch, launch.mean_losses.size(), sixteen_bits);
  }
}

std::vector<double> medians_of(const std::vector<Launch>& launches, const std::string& mode) {
  std::vector<double> medians;
  for (const Launch& launch : launches) {
    if (launch.mode.name == mode) {
      medians.push_back(launch.step_ms.median);
    }
  }
  return medians;
}

}  // namespace

void verify(const std::vector<Launch>& launches, const std::string& precision) {
  const bool sixteen_bits = precision != "f32";
  for (const Launch& launch : launches) {
    check_finite(launch);
    if (launch.parameters != launches.front().parameters) {
      refuse(launches.front(), launch, "numbers of parameters");
    }
    if (is_ours(launch)) {
      verify_ours(launches, launch, sixteen_bits);
    } else {
      verify_peer(launches, launch, sixteen_bits);
    }
  }
}

std::vector<Comparison> compare(const std::vector<Launch>& launches) {
  std::vector<Comparison> comparisons;
  const auto add = [&](const std::string& mode, const std::string& yardstick) {
    const std::vector<double> numerators = medians_of(launches, mode);
    const std::vector<double> denominators = medians_of(launches, yardstick);
    if (!numerators.empty() && !denominators.empty()) {
      comparisons.push_back({mode, yardstick, spread_of(ratios(numerators, denominators))});
    }
  };
  for (const Launch& launch : launches) {
    if (launch.round == 0 && launch.mode.kind != Kind::apart) {
      add(launch.mode.name, "apart");
    }
  }
  for (const Launch& launch : launches) {
    if (launch.round == 0 && is_peer(launch.mode)) {
      add(counterpart_of(launch.mode), launch.mode.name);
    }
  }
  return comparisons;
}

}  // namespace lockstep::bench
