// A plan's formulas with their numbers, for who wants to check them by hand.
#pragma once

#include "plan/query.h"

#include <string>

namespace lockstep::cli {

// Stage by stage: bytes of each category, bytes sent, the floor and the step.
std::string plan_explanation(const plan::PlanQuery& query, const plan::PlanAnswer& answer);

}  // namespace lockstep::cli
