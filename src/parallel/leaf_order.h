// The order in which one rank, or one shard, adds its leaves: as a running sum, or (reproducible)
// as the summation tree, so that k leaves here equal k more ranks elsewhere bit for bit.
#pragma once

#include <cstdint>

namespace lockstep::parallel {

enum class LeafOrder : std::uint8_t { running, tree };

}  // namespace lockstep::parallel
