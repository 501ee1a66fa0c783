#include "base/range.h"
#include "comm/control.h"
#include "lockstep/error.h"
#include "lockstep/plan.h"
#include "plan/flat_buckets.h"

#include <algorithm>
#include <string>

namespace lockstep::plan {
namespace {

// What rank r's own block of n elements costs when it is read from and written to all others.
std::int64_t block_bytes(std::int64_t elements, Dtype dtype, int ranks, int rank) {
  return (ranks - 1) * block_of(elements, ranks, rank, kGranule).size() * size_of(dtype);
}

void add_gradients(Traffic& traffic, const FlatBuckets& buckets, int ranks, int rank) {
  for (const auto& bucket : buckets) {
    ++traffic.collectives;
    for (const Flat& flat : bucket) {
      const std::int64_t moved = block_bytes(flat.layout.size(), flat.gradient_dtype, ranks, rank);
      traffic.sent += moved;
      traffic.received += moved;
    }
  }
}

// An all_reduce of plain memory: everybody reads all slots when it is small, else chunk by chunk
// each rank reduces its block in the stages of all.
void add_all_reduce(Traffic& traffic, std::int64_t elements, Dtype dtype, int ranks, int rank) {
  ++traffic.collectives;
  if (elements * size_of(dtype) <= comm::Control::kSlotBytes) {
    traffic.received += (ranks - 1) * elements * size_of(dtype);
    return;
  }
  const std::int64_t chunk = comm::Control::kStageBytes / size_of(dtype);
  for (std::int64_t begin = 0; begin < elements; begin += chunk) {
    const std::int64_t moved = block_bytes(std::min(chunk, elements - begin), dtype, ranks, rank);
    traffic.sent += moved;
    traffic.received += moved;
  }
}

// An all_gather of plain memory: every rank reads the others' parts, whatever the size.
void add_all_gather(Traffic& traffic, std::int64_t elements_of_each, Dtype dtype, int ranks) {
  ++traffic.collectives;
  traffic.received += (ranks - 1) * elements_of_each * size_of(dtype);
}

}  // namespace

Traffic step_traffic(std::span<const Parameter> parameters, const Training& training, int rank,
                     const SmallCollectives& small) {
  const FlatBuckets buckets = flat_buckets(parameters, training);
  if (rank < 0 || rank >= training.ranks) {
    throw UsageError("rank " + std::to_string(rank) + " of a plan for " +
                     std::to_string(training.ranks) + " ranks");
  }
  Traffic traffic;
  if (training.stage == Stage::ddp) {
    add_gradients(traffic, buckets, training.ranks, rank);
  }
  if (small.decision_elements > 0) {
    add_all_reduce(traffic, small.decision_elements, Dtype::i64, training.ranks, rank);
  }
  if (small.losses > 0) {
    add_all_gather(traffic, small.losses, Dtype::f64, training.ranks);
  }
  return traffic;
}

}  // namespace lockstep::plan
