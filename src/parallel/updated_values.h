// Brings the shards that each rank updated to all ranks. Where every rank has values of its own, in
// symmetric memory, a flat parameter's shards are gathered while the next one is updated; one copy
// on the host only waits until all have written.
#pragma once

#include "parallel/device.h"
#include "parallel/flat_parameter.h"
#include "parallel/stopwatch.h"

#include <cstddef>
#include <vector>

namespace lockstep::parallel {

class UpdatedValues {
 public:
  UpdatedValues(Device& device, Group& group, Stopwatch& exposed)
      : device_(device), group_(group), exposed_(exposed) {}

  // The kept elements of the first `count` of `parts` are updated: those that have not started yet
  // do. No rank reads the values any more: all have decided on the step.
  void start(const std::vector<FlatParameter*>& parts, std::size_t count);
  // Collective: waits until all values are everywhere.
  void finish();

 private:
  Device& device_;
  Group& group_;
  Stopwatch& exposed_;
  std::size_t started_ = 0;
  bool in_host_copy_ = false;
  std::vector<Work> works_;
};

}  // namespace lockstep::parallel
