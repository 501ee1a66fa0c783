// What makes launches comparable, and how they compare.
#pragma once

#include "bench/train/session.h"

#include <string>
#include <vector>

namespace lockstep::bench {

// Throws Error unless all launches trained the same model: equal parameter counts and finite
// losses; of ours the same bits in every launch of a mode, in the first loss of every rank 0, and
// in the losses and weights of all data-parallel modes. Where bits may differ the mean losses are
// nearly the same: of threads and the data-parallel modes of ours in every step, of all peers in
// the first one, in f32 also of the data-parallel peers in every step.
void verify(const std::vector<Launch>& launches, const std::string& precision);

// Every mode against apart; apart and the stages against the peers that do the same; where both
// were launched.
std::vector<Comparison> compare(const std::vector<Launch>& launches);

}  // namespace lockstep::bench
