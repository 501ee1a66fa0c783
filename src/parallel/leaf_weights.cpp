#include "parallel/leaf_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep::parallel {
namespace {

struct RankWeights {
  std::int64_t leaves = 0;
  std::int64_t total = 0;
  std::int64_t least = 0;
};

std::vector<RankWeights> gather(Group& group, std::span<const std::int64_t> weights) {
  constexpr std::size_t kWords = 3;
  std::array<std::int64_t, kWords> mine{
      static_cast<std::int64_t>(weights.size()),
      std::accumulate(weights.begin(), weights.end(), std::int64_t{0}),
      weights.empty() ? 0 : std::ranges::min(weights)};
  std::vector<std::int64_t> all(kWords * static_cast<std::size_t>(group.size()));
  group.all_gather(std::span(mine), std::span(all), {.name = "leaf weights"}).wait();
  std::vector<RankWeights> ranks;
  for (std::size_t at = 0; at < all.size(); at += kWords) {
    ranks.push_back({all[at], all[at + 1], all[at + 2]});
  }
  return ranks;
}

}  // namespace

std::int64_t total_weight(Group& group, std::span<const std::int64_t> weights) {
  const std::vector<RankWeights> ranks = gather(group, weights);
  std::int64_t total = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].leaves != ranks[0].leaves) {
      throw UsageError("leaf weights: rank 0 has " + std::to_string(ranks[0].leaves) + ", rank " +
                       std::to_string(rank) + " has " + std::to_string(ranks[rank].leaves) +
                       "; give one per micro-batch, 0 where a rank has no data for it");
    }
    if (ranks[rank].least < 0) {
      throw UsageError("leaf weights: expected ≥ 0, got " + std::to_string(ranks[rank].least) +
                       " on rank " + std::to_string(rank));
    }
    total += ranks[rank].total;
  }
  if (total == 0) {
    throw UsageError(
        "leaf weights: all of them are 0 on all ranks, so there is no mean; leave the step out "
        "on every rank");
  }
  return total;
}

}  // namespace lockstep::parallel
