#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/values.h"
#include "launch/launcher.h"

#include <cstdio>
#include <optional>

namespace lockstep::cli {
namespace {

Command launch_syntax() {
  return {
      .name = "lockstep launch",
      .purpose =
          "Starts N ranks of a program, on this host or on several, and ends them together.\n"
          "  lockstep launch -n 4 -- ./program its arguments\n"
          "  lockstep launch --hosts a:2,b:2 -- ./program its arguments\n"
          "Ranks find RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and "
          "MASTER_PORT\nin their environment, and read /dev/null. Lines are printed "
          "behind [rank].",
      .flags = {{"-n,--ranks", "N", "Ranks to start (1; with --hosts one per host or slot)"},
                {"--hosts", "LIST",
                 "Hosts with their ranks: a:2,b:2, or a,b for equal shares, or a file of them "
                 "(./hosts)"},
                {"--threads", "N",
                 "Compute threads of a rank (OMP_NUM_THREADS, else cores / ranks)"},
                {"--deadline", "S",
                 "Seconds without a sign of life before a rank counts as lost (300)"},
                {"--flight", "DIR",
                 "Keep each rank's last 1,000 operations in DIR, for lockstep doctor --flight"}},
      .not_built = {{"--max-restarts", "start the job again by hand"},
                    {"--min-ranks", "give -n alone"}},
      .rest = Rest::program};
}

}  // namespace

int run_launch(Words arguments) {
  constexpr WholeBounds kCounts{1, 1024};
  const CommandLine line = parse(launch_syntax(), arguments);
  if (!line.print.empty()) {
    std::fputs(line.print.c_str(), stdout);
    return 0;
  }
  launch::LaunchOptions options;
  const auto ranks = whole_value(line, "--ranks", kCounts);
  options.ranks = static_cast<int>(ranks.value_or(1));
  if (const auto hosts = line.value_of("--hosts")) {
    options.hosts = launch::hosts_of(*hosts, ranks ? std::optional(options.ranks) : std::nullopt);
    options.ranks = launch::ranks_on(options.hosts);
  }
  if (const auto threads = whole_value(line, "--threads", kCounts)) {
    options.threads = static_cast<int>(*threads);
  }
  options.deadline_s = seconds_value(line, "--deadline");
  options.flight = line.value_of("--flight").value_or("");
  options.command = line.rest;
  return launch::launch(options);
}

}  // namespace lockstep::cli
