// How the batches of an epoch are cut over ranks. Pure.
#pragma once

#include "base/range.h"
#include "lockstep/remainder.h"

#include <cstdint>

namespace lockstep {

struct BatchCut {
  std::int64_t batch = 1;  // samples of one rank in a full batch
  int ranks = 1;
  int rank = 0;
  Remainder remainder = Remainder::uneven;
};

// What one rank takes next. Offsets count from the epoch's next sample.
struct BatchShare {
  Range mine;  // with Remainder::pad it may run past the epoch's end, into its beginning
  std::int64_t taken = 0;  // samples that all ranks together use up
};

// `left` samples of the epoch are not taken yet. Ranks take consecutive blocks, so that a batch of
// one rank is the same samples in the same order as the batches of several, one after the other.
constexpr BatchShare batch_share(std::int64_t left, const BatchCut& cut) {
  LOCKSTEP_INVARIANT(left, >=, 0);
  LOCKSTEP_INVARIANT(cut.batch, >=, 1);
  if (left >= cut.batch * cut.ranks) {
    return {{cut.rank * cut.batch, (cut.rank + 1) * cut.batch}, cut.batch * cut.ranks};
  }
  const std::int64_t each = left / cut.ranks;
  const std::int64_t over = left % cut.ranks;
  switch (cut.remainder) {
    case Remainder::drop:
      return {{cut.rank * each, (cut.rank + 1) * each}, left};
    case Remainder::pad: {
      const std::int64_t padded = each + (over > 0 ? 1 : 0);
      return {{cut.rank * padded, (cut.rank + 1) * padded}, left};
    }
    case Remainder::uneven:
      break;
  }
  const auto begin_of = [each, over](std::int64_t rank) {
    return rank * each + std::min(rank, over);
  };
  return {{begin_of(cut.rank), begin_of(cut.rank + 1)}, left};
}

}  // namespace lockstep
