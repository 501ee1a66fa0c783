// What happens to the samples at the end of an epoch that do not divide by the ranks.
#pragma once

#include <cstdint>

namespace lockstep {

enum class Remainder : std::uint8_t {
  uneven,  // each sample exactly once, so some ranks get one less than others
  drop,    // the last ones, fewer than there are ranks, are left out of this epoch
  pad,     // the epoch's first ones come again, so that all ranks get equally many
};

}  // namespace lockstep
