// What a rank holds and sends, by formula in the number of parameters: for models that nobody has
// made and for any number of ranks, in a few operations. plan.h gives the same to the byte, padding
// included, for what the engine trains today; tests hold the two together.
//
// Bytes per parameter (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models", section 3.1, whose K is 12 here: an fp32 master and Adam's two
// moments):
//   bf16   2 parameter + 2 gradient + 12 optimizer          f32   4 + 4 + 8
//   ddp    16                          16
//   zero1  4 + 12/P                    8 + 8/P
//   zero2  2 + 14/P                    4 + 12/P
//   zero3  16/P                        16/P
//   hybrid as zero3, with the ranks of a shard group (G) for P
// SGD keeps one vector of 4 bytes with momentum and none without; the master stays. Sums of several
// micro-batches are fp32: with k > 1 a 16-bit gradient costs 4 bytes, and log2(k) times 4 where a
// run is reproducible. What is kept in fp32 under bf16 (norms) costs 4 + 4 + 8.
//
// Bytes sent per step, X of gradients and W of parameters (reduce_scatter and all_gather send
// (P−1)/P of them each; an all_reduce is one after the other: Thakur et al. 2005, "Optimization of
// Collective Communication Operations in MPICH", section 4.5):
//   ddp          2 (P−1)/P · X
//   zero1 zero2  (P−1)/P · (X + W)
//   zero3        (P−1)/P · (2 W + X): gathered for forward, gathered again for backward
//   hybrid       zero3 among G ranks, and 2 (R−1)/R · X/G between the R = P/G replicas
// Where micro-batches accumulate in shards, each is reduced: k times X, and zero3 gathers for each.
#pragma once

#include "lockstep/plan.h"
#include "lockstep/stage.h"
#include "plan/dials.h"
#include "plan/outline.h"

#include <cstdint>

namespace lockstep::plan {

// Bytes of one element of each kind of Amount.
struct PerElement {
  std::int64_t narrow = 0;
  std::int64_t wide = 0;

  std::int64_t bytes(const Amount& amount) const {
    return amount.narrow * narrow + amount.wide * wide;
  }
};

// What one element costs where it is whole.
struct Recipe {
  PerElement parameter;
  PerElement gradient;  // as it rests
  PerElement leaf;      // as it is sent to be added
  PerElement sum;       // as a partial or complete sum is sent
  PerElement optimizer;
};
Recipe recipe_of(Stage stage, const Dials& dials);

// Over how many ranks each category is divided.
struct Shards {
  std::int64_t parameters = 1;
  std::int64_t gradients = 1;
  std::int64_t optimizer = 1;
};
Shards shards_of(Stage stage, const Dials& dials);

// Do gradients travel micro-batch by micro-batch and add up in shards?
bool reduces_every_micro_batch(Stage stage, const Dials& dials);

// Are parameters moved to be read (and not read in place in the host's memory)?
bool gathers(Stage stage, const Dials& dials);

Ledger ledger_of(Stage stage, const Outline& outline, const Dials& dials);

// Bytes that a rank sends in one step.
struct SentBytes {
  std::int64_t gradients = 0;  // hybrid: inside a shard group
  std::int64_t parameters = 0;
  std::int64_t replicas = 0;  // hybrid: shards of gradients to those who hold the same
  std::int64_t total() const { return gradients + parameters + replicas; }
};
SentBytes sent_of(Stage stage, const Outline& outline, const Dials& dials);

// Bytes that must leave a host in one step, at least; 0 on one host.
std::int64_t sent_by_host_of(Stage stage, const Outline& outline, const Dials& dials);

}  // namespace lockstep::plan
