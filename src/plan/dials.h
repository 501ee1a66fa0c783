// How a run is set up, as the formulas take it: every dial that changes what a rank holds, sends or
// waits for. No model and no machine here.
#pragma once

#include <cstdint>

namespace lockstep::plan {

enum class Precision : std::uint8_t { f32, bf16 };

// What becomes of zero3's parameters between a unit's forward and its backward: freed, kept on
// every rank, or kept once per host.
enum class Reshard : std::uint8_t { always, never, host };

// Is a host's memory one, so that its ranks read each other's in place (processes on CPUs), or does
// each rank have its own (GPUs)?
enum class HostMemory : std::uint8_t { separate, shared };

struct Dials {
  int ranks = 1;           // P
  int ranks_per_host = 1;  // at most; the last host may have fewer
  int shard_size = 1;      // hybrid: ranks that share one replica; divides ranks
  HostMemory host_memory = HostMemory::separate;

  Precision precision = Precision::bf16;
  int optimizer_vectors = 2;  // AdamW 2, SGD 1 with momentum and 0 without
  bool reproducible = false;
  bool share_parameters = false;  // one copy for the ranks of a host, who update a shard each

  std::int64_t micro_batch = 1;     // sequences in one micro-batch of one rank
  std::int64_t sequence = 1;        // tokens
  std::int64_t accumulate = 1;      // k: micro-batches of one rank in one step
  bool accumulate_in_shard = true;  // zero2, zero3, hybrid: as AccumulateIn::shard in parallel.h

  std::int64_t unit_blocks = 1;  // zero3, hybrid: blocks that are gathered as one
  std::int64_t prefetch = 1;     // units gathered ahead of the one that computes
  Reshard reshard = Reshard::always;
  bool overlap = true;  // communication beside computation

  bool recompute = false;       // blocks' activations, in backward
  bool flash_attention = true;  // no T × T matrix is kept
  bool forwards_sums = false;   // the algorithm sends partial sums, in fp32 (ring, …)

  int hosts() const { return (ranks + ranks_per_host - 1) / ranks_per_host; }
};

}  // namespace lockstep::plan
