// The order in which an epoch visits its samples. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

// A permutation of 0 … count−1 that hangs on seed and epoch only: Fisher–Yates over splitmix64
// (Steele, Lea & Flood 2014), the same on every platform.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

}  // namespace lockstep
