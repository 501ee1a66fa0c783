#include "base/quantity.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "launch/launcher.h"
#include "lockstep/error.h"

#include <cstdio>

namespace lockstep::cli {
namespace {

Command launch_syntax() {
  return {
      .name = "lockstep launch",
      .purpose =
          "Starts N ranks of a program on this host and ends them together.\n"
          "  lockstep launch -n 4 -- ./program its arguments\n"
          "Ranks find RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and "
          "MASTER_PORT in their environment, and read /dev/null.",
      .flags = {{"-n,--ranks", "N", "Ranks to start (1)"},
                {"--threads", "N",
                 "Compute threads of a rank (OMP_NUM_THREADS, else cores / ranks)"},
                {"--deadline", "S", "Seconds without a sign of life before a rank counts as lost"}},
      .not_built = {{"--max-restarts", "start the job again by hand"},
                    {"--min-ranks", "give -n alone"},
                    {"--hosts", "all ranks run on this host"}},
      .rest = Rest::program};
}

int count_of(const CommandLine& line, const std::string& name, int fallback) {
  const auto text = line.value_of(name);
  if (!text) {
    return fallback;
  }
  const auto value = quantity::whole(*text);
  if (!value || *value < 1 || *value > 1024) {
    throw UsageError(name + ": expected a whole number from 1 to 1024, got '" + *text + "'");
  }
  return static_cast<int>(*value);
}

}  // namespace

int run_launch(std::span<const std::string> arguments) {
  const CommandLine line = parse(launch_syntax(), arguments);
  if (!line.print.empty()) {
    std::fputs(line.print.c_str(), stdout);
    return 0;
  }
  launch::LaunchOptions options;
  options.ranks = count_of(line, "--ranks", 1);
  if (line.value_of("--threads")) {
    options.threads = count_of(line, "--threads", 1);
  }
  if (const auto text = line.value_of("--deadline")) {
    options.deadline_s = quantity::seconds(*text);
    if (!options.deadline_s || *options.deadline_s <= 0) {
      throw UsageError("--deadline: expected seconds above 0 (300, 500ms, 5m), got '" + *text +
                       "'");
    }
  }
  options.command = line.rest;
  return launch::launch(options);
}

}  // namespace lockstep::cli
