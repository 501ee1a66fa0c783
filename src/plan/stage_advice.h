// Which stage to use and why, what data parallelism does not buy, and which dials are set wrong:
// one sentence each, from a plan's numbers. Pure.
//
//   model state fits comfortably           zero1 or zero2: ddp's traffic, strictly less memory
//   parameters alone do not fit            zero3, with prefetch
//   the same on hosts with slow links      hybrid
//   a single unit does not fit             tensor or pipeline parallelism
#pragma once

#include "plan/query.h"

namespace lockstep::plan {

// Sets `answer.advised` and `answer.advice` from everything else in it.
void advise(const PlanQuery& query, const Outline& outline, PlanAnswer& answer);

}  // namespace lockstep::plan
