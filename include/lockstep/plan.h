// What a training run will hold and move, by formula: bytes per rank and category, payload bytes
// per rank and step. Pure arithmetic, no LibTorch, nothing measured; tests and reports compare it
// with what the engine counts.
//
// Bytes per parameter at k = 1 micro-batch a step (P ranks; Adam's two moments are fp32):
//   held as f32    4 parameters + 4 gradients + 8 optimizer
//   held as bf16   2 parameters + 2 gradients + 12 optimizer (fp32 master and two moments)
// SGD keeps one fp32 momentum instead of the two moments, or nothing without momentum.
// With k > 1 a 16-bit gradient is held and sent as an fp32 sum (4 bytes), and a reproducible run
// holds log2(k) partial sums of it. Everything lies in flat parameters, whose padding is counted.
// zero1 divides the optimizer's bytes by P: 8 + 8/P and 4 + 12/P. zero2 the gradients' too: 4 +
// 12/P and 2 + 14/P, and has two windows of 2 MB beside. zero3 on one host the parameters' too,
// of which the host has one copy: 16/P. share_parameters divides parameters and optimizer in the
// other stages too.
#pragma once

#include "lockstep/dtype.h"
#include "lockstep/group.h"
#include "lockstep/stage.h"

#include <cstdint>
#include <span>

namespace lockstep::plan {

// One parameter of a model.
struct Parameter {
  std::int64_t elements = 0;
  Dtype dtype = Dtype::f32;  // what it is held as (its gradient too): a float
  bool trainable = true;     // a frozen one costs its own bytes only
  std::size_t unit = 0;      // zero3: the unit it belongs to, from 1; 0: none
};

// How it is trained.
struct Training {
  Stage stage = Stage::ddp;
  int ranks = 1;
  std::int64_t micro_batches = 1;   // k: of one rank in one step
  bool reproducible = false;        // needs powers of two for ranks and micro_batches
  bool accumulate_in_shard = true;  // zero2, zero3: as AccumulateIn::shard in parallel.h
  bool share_parameters = false;    // one copy on the host: as in parallel.h
  bool over_network = false;        // ranks share no memory: blocks travel by pairwise and ring
  std::int64_t unit_blocks = 1;     // zero3: units in a row that travel as one
  double bucket_mb = 25;            // 1 MB = 1e6 bytes; 0: one collective per parameter
  int optimizer_vectors = 2;  // kept per parameter: AdamW 2, SGD 1 with momentum and 0 without
};

// Bytes that one rank holds, by category; every rank holds the same.
struct Ledger {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;  // at their most: before the exchange, where they accumulate in full
  std::int64_t optimizer = 0;
  std::int64_t transient = 0;  // windows that gradients travel through: none in single and ddp
  std::int64_t total() const { return parameters + gradients + optimizer + transient; }
};

// Small collectives of a step besides the gradients, as the caller will issue them; 0: none.
struct SmallCollectives {
  std::int64_t decision_elements = 0;  // i64, all-reduced: norm, finiteness, presence
  std::int64_t losses = 0;             // f64 that each rank gives, all-gathered
};

// `parameters` in registration order. All throw UsageError for a stage that is not built yet, for
// several ranks in stage single, and for a Training or a dtype that can't be trained.
Ledger ledger(std::span<const Parameter> parameters, const Training& training);

// Payload of one step on `rank` (shared memory: received = bytes read from others' memory, sent =
// bytes written into it). ddp: (P−1)/P·X each, X being the gradients in flat buckets. zero1:
// (P−1)/P·X received for the gradients, and as much of the parameters sent once they are updated,
// unless the host has one copy of them.
// zero2 receives gradients for every micro-batch that accumulates in shards. Over a network sent
// and received are the messages': (P−1)/P·X each for a reduction into shards, and as much for a
// gather.
Traffic step_traffic(std::span<const Parameter> parameters, const Training& training, int rank,
                     const SmallCollectives& small = {});

// Collectives that exchange gradients in one step.
std::int64_t buckets(std::span<const Parameter> parameters, const Training& training);

}  // namespace lockstep::plan
