// Verifies a collective, then times it against plain copies.
#pragma once

#include "bench/collectives/buffers.h"
#include "lockstep/group.h"

#include <cstdint>

namespace lockstep::bench {

struct Answer {
  Question question;
  double ms = 0;  // median over the repeats; of each the slowest rank
  double least_ms = 0;
  double gb_per_s = 0;     // X / ms; 1 GB = 1e9 bytes
  double floor_share = 0;  // the floor at the copies' bandwidth / ms
};

// Bytes per rank that a collective of X bytes cannot avoid to read and write.
double floor_bytes(Collective collective, std::int64_t bytes, int ranks);

// Collective; every rank gets the same answer. Throws Error when a result is wrong.
Answer measure(Group& group, const Question& question, std::int64_t cache_bytes);

}  // namespace lockstep::bench
