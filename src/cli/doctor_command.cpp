#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/finding.h"
#include "cli/flight_checks.h"
#include "cli/host_checks.h"
#include "cli/program_checks.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace lockstep::cli {
namespace {

Command doctor_syntax() {
  return {
      .name = "lockstep doctor",
      .purpose =
          "Says what this machine can do and what would slow or stop a run, for a bug report "
          "too.\n"
          "Takes about five seconds: it moves bytes between two ranks and trains one step.\n"
          "Exit code 0: nothing failed (there may be warnings), 1: something did.",
      .flags = {{"--json", "", "Print one JSON object"},
                {"--flight", "DIR",
                 "Instead: which rank of a job diverged, died or hangs, from the files that its "
                 "flight recorders keep in DIR (RUN/flight of a train run)"}},
      .not_built = {},
      .rest = Rest::none};
}

}  // namespace

int run_doctor(Words arguments) {
  const CommandLine line = parse(doctor_syntax(), arguments);
  if (!line.print.empty()) {
    std::fputs(line.print.c_str(), stdout);
    return 0;
  }
  const auto flight = line.value_of("--flight");
  std::vector<Finding> findings =
      flight ? check_flights(flights_of(*flight)) : check_host(this_host());
  if (!flight) {
    std::ranges::move(check_programs(), std::back_inserter(findings));
  }
  const bool json = line.value_of("--json").has_value();
  std::fputs(
      json ? (findings_json(findings).dump(1) + "\n").c_str() : findings_text(findings).c_str(),
      stdout);
  return worst(findings) == Verdict::fail ? 1 : 0;
}

}  // namespace lockstep::cli
