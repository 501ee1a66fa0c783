#include "bench/acceptance/options.h"

#include "bench/train/options.h"
#include "cli/command_line.h"
#include "lockstep/error.h"

namespace lockstep::bench {
namespace {

cli::Command syntax() {
  return {.name = "lockstep bench acceptance",
          .purpose =
              "Measures what the project promises in numbers and prints each bound with the value\n"
              "and whether it holds. Takes about 20 minutes; other work on the machine disturbs\n"
              "it.",
          .flags = {{"--require", "", "Exit with 1 when a bound is missed"},
                    {"--area", "NAME", "train: the only area that has bounds yet (train)"},
                    {"--python", "FILE", "Interpreter with torch, the yardstick (.deps/venv's)"}},
          .not_built = {},
          .rest = cli::Rest::none};
}

void check_area(const std::string& area) {
  if (area == "train") {
    return;
  }
  if (area == "comm") {
    throw UsageError(
        "--area comm: has no bounds yet; see lockstep bench collectives for its figures");
  }
  const bool later = area == "checkpoint" || area == "plan";
  throw UsageError("--area " + area + (later ? ": not built yet" : ": unknown") + "; use train");
}

}  // namespace

AcceptanceOptions parse_acceptance(std::span<const std::string> words) {
  const cli::CommandLine line = cli::parse(syntax(), words);
  AcceptanceOptions options{.print = line.print, .require = false, .python = default_python()};
  if (!options.print.empty()) {
    return options;
  }
  check_area(line.value_of("--area").value_or("train"));
  options.require = line.value_of("--require").has_value();
  options.python = line.value_of("--python").value_or(options.python);
  check_python(options.python);
  return options;
}

}  // namespace lockstep::bench
