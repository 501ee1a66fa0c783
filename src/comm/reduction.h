// What a reduction does to each element, resolved from ReduceOptions.
#pragma once

#include "lockstep/group.h"

#include <optional>

namespace lockstep::comm {

struct Reduction {
  ReduceOp op = ReduceOp::sum;  // never mean: that is sum with scale 1/P
  std::optional<double> scale = {};
  std::optional<Dtype> round_to = {};  // of plain spans; each symmetric part has its own
};

}  // namespace lockstep::comm
