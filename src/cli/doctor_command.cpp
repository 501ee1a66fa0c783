#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/finding.h"
#include "cli/host_checks.h"
#include "cli/program_checks.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace lockstep::cli {
namespace {

Command doctor_syntax() {
  return {.name = "lockstep doctor",
          .purpose =
              "Says what this machine can do and what would slow or stop a run, for a bug report "
              "too.\n"
              "Takes about five seconds: it moves bytes between two ranks and trains one step.\n"
              "Exit code 0: nothing failed (there may be warnings), 1: something did.",
          .flags = {{"--json", "", "Print one JSON object"}},
          .not_built = {{"--flight", "a failing job's first lines say which rank diverged"}},
          .rest = Rest::none};
}

}  // namespace

int run_doctor(Words arguments) {
  const CommandLine line = parse(doctor_syntax(), arguments);
  if (!line.print.empty()) {
    std::fputs(line.print.c_str(), stdout);
    return 0;
  }
  std::vector<Finding> findings = check_host(this_host());
  for (Finding& finding : check_programs()) {
    findings.push_back(std::move(finding));
  }
  const bool json = line.value_of("--json").has_value();
  std::fputs(
      json ? (findings_json(findings).dump(1) + "\n").c_str() : findings_text(findings).c_str(),
      stdout);
  return worst(findings) == Verdict::fail ? 1 : 0;
}

}  // namespace lockstep::cli
