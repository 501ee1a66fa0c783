// Leaves that count by a weight (tokens, samples) instead of equally.
#pragma once

#include "lockstep/group.h"

#include <cstdint>
#include <span>

namespace lockstep::parallel {

// Collective. The sum of all ranks' weights, which are ≥ 0 and equally many on every rank. Throws
// UsageError on every rank, naming the first that is at fault, or when all weights are zero.
std::int64_t total_weight(Group& group, std::span<const std::int64_t> weights);

}  // namespace lockstep::parallel
