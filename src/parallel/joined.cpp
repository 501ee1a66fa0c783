#include "lockstep/data.h"

#include <array>
#include <span>

namespace lockstep {

bool any_rank(Group& group, bool here) {
  std::array<std::int64_t, 1> ranks{here ? 1 : 0};
  group.all_reduce(std::span(ranks), {.op = ReduceOp::max, .name = "any rank"}).wait();
  return ranks[0] > 0;
}

}  // namespace lockstep
