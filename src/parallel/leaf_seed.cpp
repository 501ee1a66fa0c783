#include "parallel/leaf_seed.h"

namespace lockstep::parallel {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t leaf_seed(std::uint64_t seed, std::int64_t step, std::int64_t leaf) {
  const std::uint64_t mixed =
      mix(mix(mix(seed) ^ static_cast<std::uint64_t>(step)) ^ static_cast<std::uint64_t>(leaf));
  return mixed >> 32;
}

}  // namespace lockstep::parallel
