// A plan's answer as a table for a terminal.
#pragma once

#include "plan/query.h"

#include <string>

namespace lockstep::cli {

// A table of the stages with a bar for each, and the answers below it. Every unit is named.
std::string plan_table(const plan::PlanQuery& query, const plan::PlanAnswer& answer);

}  // namespace lockstep::cli
