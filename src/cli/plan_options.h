// From words to a plan's question, for `lockstep plan` and for its page.
#pragma once

#include "plan/query.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::cli {

// How a plan is shown.
enum class PlanForm : std::uint8_t { table, json, explanation, page };

struct PlanRequest {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  PlanForm form = PlanForm::table;
  plan::PlanQuery query;
  int port = 0;  // of the page; 0: a free one
};

// An option that is part of the question, and not of how its answer is shown.
struct PlanOption {
  std::string name;  // "params"
  bool is_switch = false;
};
std::vector<PlanOption> question_options();

struct GivenOption {
  std::string name;   // of a question_options()
  std::string value;  // "true" of a switch
};
// What of the question the words give. Throws UsageError.
std::vector<GivenOption> question_of(std::span<const std::string> arguments);

// Reads the words behind `plan`; a page needs no model yet. Throws UsageError; reads the model's
// config.json and the hardware's file where they are named. plan::check() is the caller's, or
// plan::answer()'s.
PlanRequest parse_plan(std::span<const std::string> arguments);

}  // namespace lockstep::cli
