// From words to a plan's question, for `lockstep plan` and for its page.
#pragma once

#include "plan/query.h"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::cli {

// How a plan is shown.
enum class PlanForm : std::uint8_t { table, json, explanation };

struct PlanRequest {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  PlanForm form = PlanForm::table;
  plan::PlanQuery query;
};

// Reads the words behind `plan`. Throws UsageError; reads the model's config.json and the
// hardware's file where they are named. plan::check() is the caller's, or plan::answer()'s.
PlanRequest parse_plan(std::span<const std::string> arguments);

}  // namespace lockstep::cli
