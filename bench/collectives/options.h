// What `lockstep bench collectives` was asked to measure.
#pragma once

#include "lockstep/algorithm.h"
#include "lockstep/dtype.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::bench {

enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather };

std::string name_of(Collective collective);

struct CollectivesOptions {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  int ranks = 2;
  std::vector<std::int64_t> sizes;  // X in bytes, each a multiple of the element
  std::vector<Collective> collectives;
  std::vector<Algorithm> algorithms;
  Dtype dtype = Dtype::f32;
  bool plain = false;  // spans anywhere in memory too, not only symmetric ones
  bool json = false;
};

// `ranks`: how many there are unless the options say so. Throws UsageError.
CollectivesOptions parse_collectives(std::span<const std::string> words, int ranks);

}  // namespace lockstep::bench
