#include "train/shared_cores.h"

#include "machine/cores.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::train {

int shared_cores(Group& group) {
  const std::vector<int> mine = machine::allowed_cores();
  std::int64_t count = mine.back() + 1;
  group.all_reduce(std::span(&count, 1), {.op = ReduceOp::max, .name = "highest core"}).wait();
  std::vector<std::int32_t> used(static_cast<std::size_t>(count), 0);
  for (const int core : mine) {
    used[static_cast<std::size_t>(core)] = 1;
  }
  group.all_reduce(std::span(used), {.op = ReduceOp::max, .name = "cores"}).wait();
  return machine::usable_cores(static_cast<std::size_t>(std::ranges::count(used, 1)),
                               machine::cpu_quota());
}

}  // namespace lockstep::train
