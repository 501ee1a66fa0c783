// How a collective uses a transport, by the names that the command line and reports use. What each
// costs stands in docs/collectives.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

enum class Algorithm : std::uint8_t {
  automatic,         // chosen by what is known of the ranks and the bytes
  direct,            // ranks on one host read and write each other's memory in place
  pairwise,          // each block goes straight to its owner, one peer after the other
  ring,              // blocks pass from neighbour to neighbour, growing by one leaf at each
  halving_doubling,  // with half of what is left to a partner at distance 1, 2, 4, …
  tree,              // binomial: everything to one rank and back, halving who still takes part
  hierarchical,      // inside each host first, then between hosts
  coordinator,       // one rank takes in everything, adds, and sends it back
  native,            // the transport's own
};

inline constexpr std::array kAlgorithms{
    Algorithm::automatic,    Algorithm::direct,           Algorithm::pairwise,
    Algorithm::ring,         Algorithm::halving_doubling, Algorithm::tree,
    Algorithm::hierarchical, Algorithm::coordinator,      Algorithm::native};

constexpr std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic:
      return "auto";
    case Algorithm::direct:
      return "direct";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::ring:
      return "ring";
    case Algorithm::halving_doubling:
      return "halving-doubling";
    case Algorithm::tree:
      return "tree";
    case Algorithm::hierarchical:
      return "hierarchical";
    case Algorithm::coordinator:
      return "coordinator";
    case Algorithm::native:
      return "native";
  }
  return "?";
}

// The algorithm of that name, or nothing.
constexpr std::optional<Algorithm> algorithm_named(std::string_view name) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (name_of(algorithm) == name) {
      return algorithm;
    }
  }
  return std::nullopt;
}

// Does a sum of every element add in the summation tree (group.h), so that it has the same bits by
// any algorithm of which this is true, in buckets of any size? ring's order hangs on the block, and
// nothing is known of native's.
constexpr bool adds_in_tree(Algorithm algorithm, int ranks, int ranks_per_host) {
  const auto is_power_of_two = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
  switch (algorithm) {
    case Algorithm::halving_doubling:
      return is_power_of_two(ranks);
    case Algorithm::hierarchical:
      return is_power_of_two(ranks_per_host);
    case Algorithm::ring:
    case Algorithm::native:
      return false;
    default:
      return true;
  }
}

}  // namespace lockstep
