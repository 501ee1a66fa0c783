// One step of a stage as tasks for the simulation: what is computed, what travels, and what waits
// for what. Pure.
//
//   ddp, zero1   backward of the last micro-batch fills buckets; each is exchanged when it is full
//   zero2        so in every micro-batch, where they add up in shards
//   zero1, zero2 spread the updated parameters, bucket by bucket
//   zero3        gathers a unit before its forward and again before its backward, Dials::prefetch
//                units ahead of the one that computes, and reduces its gradients behind it
//   hybrid       so inside a shard group; then replicas add up their shards
// Backward takes twice as long as forward, three times with recomputation. Before the update all
// ranks decide together (norm, clipping, skipping): a small all_reduce.
#pragma once

#include "lockstep/stage.h"
#include "plan/collective_cost.h"
#include "plan/dials.h"
#include "plan/outline.h"
#include "plan/timeline.h"

#include <optional>
#include <vector>

namespace lockstep::plan {

// Operations of one micro-batch's forward and backward.
struct Operations {
  double per_element_token = 0;   // tokens of the micro-batch: each element is used once for each
  double attention_of_block = 0;  // forward, beside its parameters
};

struct Job {
  Stage stage = Stage::ddp;
  const Outline& outline;
  const Dials& dials;
  const Hardware& hardware;
  Operations operations;
  std::optional<Algorithm> algorithm = {};  // of gradients; nothing: the quickest for each size
};

// All ranks, as one network.
Network world_of(const Dials& dials, const Hardware& hardware);

// Can `job.algorithm` add up what the stage adds up?
bool is_possible(const Job& job);

// Needs is_possible(job).
std::vector<Task> schedule_of(const Job& job);

}  // namespace lockstep::plan
