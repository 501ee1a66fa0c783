// How many processors the ranks of a run have together.
#pragma once

#include "lockstep/group.h"

namespace lockstep::train {

// Collective. Processors that at least one rank of `group` may run on, or the control group's quota
// of time where that is less; at least 1.
int shared_cores(Group& group);

}  // namespace lockstep::train
