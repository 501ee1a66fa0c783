// What a collective costs by algorithm, in the α–β model: a message of n bytes takes α + n/B. n
// bytes in all, P ranks, G of them on each of H hosts; ranks of a host share its link to others.
//
//   algorithm         all_reduce, one host                     from
//   direct            2 α + 2 (P−1)/P n/B                      each rank reads all others' blocks
//   pairwise          2 (P−1) α + 2 (P−1)/P n/B                Thakur et al. 2005, section 4.3
//   ring              2 (P−1) α + 2 (P−1)/P n/B                Patarasuk & Yuan 2009
//   halving_doubling  2 log2(P) α + 2 (P−1)/P n/B              Rabenseifner 2004; when P is no
//                     power of two, those above one first give all they have to a partner
//   tree              2 ⌈log2 P⌉ (α + n/B)                     binomial reduce, then broadcast
//   hierarchical      direct inside, ring between hosts, direct inside
//   coordinator       2 (P−1) (α + n/B)                        one rank receives and sends all
//
// A reduce_scatter is the first half of that and an all_gather the second; tree and coordinator end
// on one rank in between and are all_reduces only. Where partial sums are
// forwarded (ring, halving_doubling, tree, between hosts in hierarchical), the first half moves
// them in fp32: more bytes than leaves of 16 bits have. Pure.
#pragma once

#include "lockstep/algorithm.h"
#include "plan/hardware.h"

#include <array>
#include <cstdint>
#include <optional>

namespace lockstep::plan {

using lockstep::Algorithm;

// Those that have a price.
inline constexpr std::array kPlannedAlgorithms{
    Algorithm::direct, Algorithm::pairwise,     Algorithm::ring,       Algorithm::halving_doubling,
    Algorithm::tree,   Algorithm::hierarchical, Algorithm::coordinator};

// Does it send partial sums, and not only leaves and results?
constexpr bool forwards_sums(Algorithm algorithm) {
  return algorithm == Algorithm::ring || algorithm == Algorithm::halving_doubling ||
         algorithm == Algorithm::tree || algorithm == Algorithm::hierarchical;
}

enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather };

// The ranks that take part, and what lies between them.
struct Network {
  int ranks = 1;           // P
  int ranks_per_host = 1;  // G
  Link inside;             // of a rank
  Link between;            // of a host

  int hosts() const { return (ranks + ranks_per_host - 1) / ranks_per_host; }
};

// n, by what it is when it travels. An all_gather knows leaf_bytes only.
struct Payload {
  std::int64_t leaf_bytes = 0;
  std::int64_t sum_bytes = 0;
};

struct Cost {
  double seconds = 0;
  std::int64_t steps = 0;       // messages one after the other
  std::int64_t sent_bytes = 0;  // by the rank that sends most
};

// Nothing where the algorithm is not for that: direct is for one host, hierarchical for several,
// tree and coordinator for all_reduce.
std::optional<Cost> cost_of(Collective collective, Algorithm algorithm, const Payload& payload,
                            const Network& network);

// The algorithm that takes least time, coordinator left out.
Algorithm quickest(Collective collective, const Payload& payload, const Network& network);

}  // namespace lockstep::plan
