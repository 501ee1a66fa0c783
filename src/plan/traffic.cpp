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

// Each rank reads its block of all others' gradients, and in ddp writes the mean into theirs.
void add_gradients(Traffic& traffic, const FlatBuckets& buckets, const Training& training,
                   int rank) {
  const std::int64_t times = across_first(training) ? training.micro_batches : 1;
  for (const auto& bucket : buckets) {
    traffic.collectives += times;
    for (const Flat& flat : bucket) {
      const std::int64_t moved =
          times * block_bytes(flat.layout.size(), flat.sent_dtype, training.ranks, rank);
      traffic.received += moved;
      traffic.sent += is_sharded(training.stage) ? 0 : moved;
    }
  }
}

// Each rank writes the shard that it updated into all others' values.
void add_updated_values(Traffic& traffic, const FlatBuckets& buckets, int ranks, int rank) {
  for (const auto& bucket : buckets) {
    for (const Flat& flat : bucket) {
      ++traffic.collectives;
      traffic.sent += block_bytes(flat.layout.size(), flat.dtype, ranks, rank);
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
  if (training.stage != Stage::single) {
    add_gradients(traffic, buckets, training, rank);
  }
  if (updates_shards(training.stage, training.share_parameters) &&
      !shares_parameters(training.stage, training.share_parameters)) {
    add_updated_values(traffic, buckets, training.ranks, rank);
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
