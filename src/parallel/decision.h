// What a step's gradient amounts to, decided by all ranks together in one small collective: its
// norm, whether it is finite, which parameters have one at all.
#pragma once

#include "lockstep/group.h"
#include "optim/norm.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::parallel {

struct Decision {
  double norm = 0;            // over all parameters; the same bits on every rank
  bool all_finite = true;     // on every rank
  std::vector<bool> present;  // per parameter: did any rank have a gradient
  bool orders_agree = true;   // of the digests that ranks gave
};

// Collective. `squares`: of the elements that this rank counts; `arrived`: per parameter, here;
// `order`: of the units that this rank used (unit_order.h), on all ranks or on none.
Decision decide(Group& group, const optim::SquareSum& squares, const std::vector<bool>& arrived,
                std::optional<std::uint32_t> order = std::nullopt);

}  // namespace lockstep::parallel
