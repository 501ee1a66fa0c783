// What a collective must give, worked out element by element from what every rank put in.
#pragma once

#include "bench/collectives/options.h"
#include "lockstep/dtype.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::bench {

// Elements of `dtype` (f32 or bf16) in `bytes`: rank r's values, in [-1, 1), different on each rank
// and at each element.
void fill(std::span<std::byte> bytes, Dtype dtype, int rank);

// What stands where after a collective.
struct Expectation {
  Collective collective = Collective::all_reduce;  // reductions take the mean
  Dtype dtype = Dtype::f32;
  int ranks = 1;
  Algorithm algorithm = Algorithm::automatic;  // ring adds in an order of its own
};

// The bytes that a rank holds in its whole buffer of `bytes.size()`, filled before the collective
// ran in place. Throws Error naming the first element that differs in any bit from the sum in the
// summation tree, or around the ring to the owner of the element, times 1/P, rounded once
// (reductions), or from its owner's value (all_gather).
void verify(std::span<const std::byte> bytes, int rank, const Expectation& expected);

}  // namespace lockstep::bench
