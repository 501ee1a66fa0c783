#include "launch/placement.h"

#include "base/invariant.h"
#include "machine/cores.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::launch {

Placement place(std::span<const int> cores, std::optional<double> quota, int ranks) {
  LOCKSTEP_INVARIANT(cores.size(), >, 0u);
  LOCKSTEP_INVARIANT(ranks, >=, 1);
  const std::size_t count = cores.size();
  const std::size_t parts = static_cast<std::size_t>(ranks);
  Placement placement;
  for (std::size_t rank = 0; rank < parts; ++rank) {
    if (parts > count) {
      placement.cores_of_rank.push_back({cores[rank % count]});
      continue;
    }
    const auto block =
        cores.subspan(rank * count / parts, (rank + 1) * count / parts - rank * count / parts);
    placement.cores_of_rank.emplace_back(block.begin(), block.end());
  }
  placement.threads_per_rank = std::max(1, machine::usable_cores(count, quota) / ranks);
  return placement;
}

}  // namespace lockstep::launch
