// What LibTorch's default generator is seeded with before a micro-batch.
#pragma once

#include <cstdint>

namespace lockstep::parallel {

// Mixed from all three (splitmix64, Steele, Lea, Flood 2014), folded to the 32 bits that count for
// LibTorch's generator.
std::uint64_t leaf_seed(std::uint64_t seed, std::int64_t step, std::int64_t leaf);

}  // namespace lockstep::parallel
