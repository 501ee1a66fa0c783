// A plan's answer as JSON. Bytes and parameters are whole numbers, times milliseconds.
#pragma once

#include "plan/query.h"

#include <nlohmann/json.hpp>

namespace lockstep::cli {

// `lockstep plan --json`: {parameters, ranks, stages[{stage, bytes{parameters, gradients,
// optimizer, transient, activations, total}, sent, floor_ms, step_ms, fits}], smallest_stage,
// smallest_ranks{stage: P}, advice}. smallest_stage is null when none fits, smallest_ranks of a
// stage when no number of ranks does, step_ms when --algorithm is not for that stage.
nlohmann::ordered_json plan_json(const plan::PlanAnswer& answer);

// What the page draws: the same object, and beside it
//   hosts, ranks_per_host, shard_size, device_memory, hardware{name, description, source},
//   parts_known, tokens_per_step, advised (a stage or null), reasons[] (advice, line by line),
//   activations{block, kept, head, peak}
//   in each stage: sent_gradients, sent_parameters, sent_replicas, sent_by_host, exposed_ms,
//   compute_ms,
//     communication_ms, tokens_per_s, efficiency, smallest_ranks, largest_micro_batch,
//     largest_parameters (null where there is none)
//   curves[{stage, points[{ranks, total, sent, floor_ms, step_ms, exposed_ms, tokens_per_s,
//     efficiency}]}] when the query asked for curves
//   timeline[{lane, kind, part, micro_batch, begin_ms, end_ms}] when it asked for one
nlohmann::ordered_json plan_page_json(const plan::PlanQuery& query, const plan::PlanAnswer& answer);

}  // namespace lockstep::cli
