// Which cores a rank runs on and how many compute threads it gets. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace lockstep::launch {

struct Placement {
  std::vector<std::vector<int>> cores_of_rank;
  int threads_per_rank = 1;
};

// Shares `cores` (CPU numbers, at least one) out to `ranks` (≥ 1) in contiguous blocks that differ
// by at most one core; with more ranks than cores, rank r runs on core r mod cores. Threads are the
// cores, or the quota (in CPUs' worth of time) where that is less, divided by the ranks, rounded
// down, at least 1: equal for all ranks, since results may hang on it.
Placement place(std::span<const int> cores, std::optional<double> quota, int ranks);

}  // namespace lockstep::launch
