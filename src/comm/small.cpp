#include "comm/small.h"

#include "base/invariant.h"
#include "base/range.h"
#include "comm/copy.h"
#include "comm/reduce_kernels.h"

#include <array>
#include <vector>

namespace lockstep::comm {
namespace {

// Reduces bytes [offset, …) of everybody's slots into `output`.
template <class SlotOf>
void reduce_slots(SlotOf slot_of, int ranks, std::int64_t offset, Span output,
                  const Reduction& reduction) {
  std::vector<const void*> sources;
  for (int r = 0; r < ranks; ++r) {
    sources.push_back(slot_of(r) + offset);
  }
  const std::array<void*, 1> destination{output.data};
  ReduceTask task;
  task.sources = sources;
  task.destinations = destination;
  task.count = output.count;
  task.dtype = output.dtype;
  task.op = reduction.op;
  task.scale = reduction.scale;
  task.round_to = reduction.round_to;
  reduce(task);
}

}  // namespace

SmallOperation::SmallOperation(const Fingerprint& fingerprint, Control& control)
    : Operation(fingerprint), control_(control) {}

bool SmallOperation::run(std::int64_t step, Traffic& traffic) {
  if (step == 0) {
    slots_ = control_.next_slots();
    const Span data = input();
    LOCKSTEP_INVARIANT(data.bytes(), <=, Control::kSlotBytes);
    copy_bytes(control_.slot(slots_, rank()), data.data, data.bytes());
    return true;
  }
  traffic.received += take();
  return true;
}

std::int64_t SmallAllReduce::take() {
  reduce_slots([&](int r) { return slot(r); }, ranks(), 0, data_, reduction_);
  return (ranks() - 1) * data_.bytes();
}

std::int64_t SmallReduceScatter::take() {
  const Range block = block_of(input_.count, ranks(), rank());
  reduce_slots([&](int r) { return slot(r); }, ranks(), block.begin * size_of(input_.dtype),
               output_, reduction_);
  return (ranks() - 1) * output_.bytes();
}

std::int64_t SmallAllGather::take() {
  const std::int64_t element = size_of(output_.dtype);
  std::int64_t received = 0;
  for (int r = 0; r < ranks(); ++r) {
    const Range block = block_of(output_.count, ranks(), r);
    auto* place = static_cast<std::byte*>(output_.data) + block.begin * element;
    if (r == rank()) {
      copy_bytes(place, input_.data, input_.bytes());
      continue;
    }
    copy_bytes(place, slot(r), block.size() * element);
    received += block.size() * element;
  }
  return received;
}

std::int64_t SmallBroadcast::take() {
  if (rank() == root_) {
    return 0;
  }
  copy_bytes(data_.data, slot(root_), data_.bytes());
  return data_.bytes();
}

}  // namespace lockstep::comm
