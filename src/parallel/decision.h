// What a step's gradient amounts to, decided by all ranks together in one small collective: its
// norm, whether it is finite, which parameters have one at all.
#pragma once

#include "lockstep/group.h"
#include "optim/norm.h"

#include <cstdint>
#include <vector>

namespace lockstep::parallel {

struct Decision {
  double norm = 0;            // over all parameters; the same bits on every rank
  bool all_finite = true;     // on every rank
  std::vector<bool> present;  // per parameter: did any rank have a gradient
};

// Collective. `squares`: of the elements that this rank counts; `arrived`: per parameter, here.
Decision decide(Group& group, const optim::SquareSum& squares, const std::vector<bool>& arrived);

}  // namespace lockstep::parallel
