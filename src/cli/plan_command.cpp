#include "cli/commands.h"
#include "cli/plan_explain.h"
#include "cli/plan_json.h"
#include "cli/plan_options.h"
#include "cli/plan_text.h"
#include "cli/sibling.h"
#include "cli/standard_output.h"

#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

std::string text_of(const PlanRequest& request) {
  const plan::PlanAnswer answer = plan::answer(request.query);
  switch (request.form) {
    case PlanForm::json:
      return plan_json(answer).dump(1) + "\n";
    case PlanForm::explanation:
      return plan_explanation(request.query, answer);
    case PlanForm::table:
    case PlanForm::page:  // another program's
      break;
  }
  return plan_table(request.query, answer);
}

}  // namespace

int run_plan(Words arguments) {
  const PlanRequest request = parse_plan(arguments);
  if (request.print.empty() && request.form == PlanForm::page) {
    std::vector<std::string> words{"plan"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    become_sibling("lockstep-page", words);
  }
  if (!print_if_asked(request.print)) {
    std::fputs(text_of(request).c_str(), stdout);
  }
  return 0;
}

}  // namespace lockstep::cli
