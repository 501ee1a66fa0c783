#include "base/range.h"
#include "comm/control.h"
#include "lockstep/error.h"
#include "lockstep/plan.h"
#include "plan/flat_buckets.h"

#include <algorithm>
#include <string>

namespace lockstep::plan {
namespace {

std::int64_t block_bytes(std::int64_t elements, Dtype dtype, int ranks, int rank) {
  return block_of(elements, ranks, rank, kGranule).size() * size_of(dtype);
}

// The two halves of an all_reduce of n elements over a network. Every leaf goes straight to its
// owner (pairwise):
void add_network_reduce_scatter(Traffic& traffic, std::int64_t elements, Dtype dtype, int ranks,
                                int rank) {
  const std::int64_t own = block_bytes(elements, dtype, ranks, rank);
  traffic.sent += elements * size_of(dtype) - own;
  traffic.received += (ranks - 1) * own;
}

// and results go around the ring: a rank passes on every block but that of the rank it sends to.
void add_network_all_gather(Traffic& traffic, std::int64_t elements, Dtype dtype, int ranks,
                            int rank) {
  const std::int64_t bytes = elements * size_of(dtype);
  traffic.sent += bytes - block_bytes(elements, dtype, ranks, (rank + 1) % ranks);
  traffic.received += bytes - block_bytes(elements, dtype, ranks, rank);
}

// Each rank reads its block of all others' gradients, and in ddp writes the mean into theirs.
void add_flat_gradient(Traffic& traffic, const Flat& flat, const Training& training, int rank) {
  const std::int64_t elements = flat.layout.size();
  if (training.over_network) {
    add_network_reduce_scatter(traffic, elements, flat.sent_dtype, training.ranks, rank);
    if (!is_sharded(training.stage)) {
      add_network_all_gather(traffic, elements, flat.sent_dtype, training.ranks, rank);
    }
    return;
  }
  const std::int64_t moved =
      (training.ranks - 1) * block_bytes(elements, flat.sent_dtype, training.ranks, rank);
  traffic.received += moved;
  traffic.sent += is_sharded(training.stage) ? 0 : moved;
}

void add_gradients(Traffic& traffic, const FlatBuckets& buckets, const Training& training,
                   int rank) {
  const std::int64_t times = across_first(training) ? training.micro_batches : 1;
  Traffic once;
  for (const auto& bucket : buckets) {
    ++once.collectives;
    for (const Flat& flat : bucket) {
      add_flat_gradient(once, flat, training, rank);
    }
  }
  traffic.sent += times * once.sent;
  traffic.received += times * once.received;
  traffic.collectives += times * once.collectives;
}

// Each rank writes the shard that it updated into all others' values.
void add_updated_values(Traffic& traffic, const FlatBuckets& buckets, const Training& training,
                        int rank) {
  const int ranks = training.ranks;
  for (const auto& bucket : buckets) {
    for (const Flat& flat : bucket) {
      ++traffic.collectives;
      if (training.over_network) {
        add_network_all_gather(traffic, flat.layout.size(), flat.dtype, ranks, rank);
      } else {
        traffic.sent += (ranks - 1) * block_bytes(flat.layout.size(), flat.dtype, ranks, rank);
      }
    }
  }
}

// An all_reduce of plain memory: everybody reads all slots when it is small, else chunk by chunk
// each rank reduces its block in the stages of all.
void add_all_reduce(Traffic& traffic, std::int64_t elements, Dtype dtype, const Training& training,
                    int rank) {
  const int ranks = training.ranks;
  ++traffic.collectives;
  if (training.over_network) {
    add_network_reduce_scatter(traffic, elements, dtype, ranks, rank);
    add_network_all_gather(traffic, elements, dtype, ranks, rank);
    return;
  }
  if (elements * size_of(dtype) <= comm::Control::kSlotBytes) {
    traffic.received += (ranks - 1) * elements * size_of(dtype);
    return;
  }
  const std::int64_t chunk = comm::Control::kStageBytes / size_of(dtype);
  for (std::int64_t begin = 0; begin < elements; begin += chunk) {
    const std::int64_t moved =
        (ranks - 1) * block_bytes(std::min(chunk, elements - begin), dtype, ranks, rank);
    traffic.sent += moved;
    traffic.received += moved;
  }
}

// An all_gather of plain memory: every rank reads the others' parts, whatever the size.
void add_all_gather(Traffic& traffic, std::int64_t elements_of_each, Dtype dtype,
                    const Training& training) {
  const std::int64_t moved = (training.ranks - 1) * elements_of_each * size_of(dtype);
  ++traffic.collectives;
  traffic.received += moved;
  traffic.sent += training.over_network ? moved : 0;
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
    add_updated_values(traffic, buckets, training, rank);
  }
  if (small.decision_elements > 0) {
    add_all_reduce(traffic, small.decision_elements, Dtype::i64, training, rank);
  }
  if (small.losses > 0) {
    add_all_gather(traffic, small.losses, Dtype::f64, training);
  }
  return traffic;
}

}  // namespace lockstep::plan
