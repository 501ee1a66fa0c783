// A train run's folder as an onlooker sees it, while the run writes to it and after.
#pragma once

#include "cli/finding.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

enum class RunState : std::uint8_t {
  running,  // a rank lives, or the run is of another machine and has no report yet
  ended,    // no rank lives, and there is a report.json
  stopped,  // no rank lives, and there is none
};

std::string_view name_of(RunState state);

struct RunView {
  std::string folder;
  RunState state = RunState::stopped;
  std::vector<std::pair<std::string, std::string>> options;  // of its config.toml; none: unreadable
  std::vector<Finding> ranks;  // as check_flights(): first the cause, then a line per rank
};

// Whether a folder is a run's: it holds a config.toml.
bool is_run(const std::string& folder);

// Never throws for what the folder holds.
RunView look_at_run(const std::string& folder);

// Whole lines of its metrics.jsonl.
struct MetricsPiece {
  std::int64_t from = 0;              // bytes: 0 where the file is no longer the one that was read
  std::int64_t next = 0;              // what to ask for next
  bool more = false;                  // there are further lines now
  std::vector<nlohmann::json> lines;  // objects; what is none is left out
};

// From byte `from` on, where a line must begin; about `most` bytes. Without a file: nothing.
MetricsPiece read_metrics(const std::string& folder, std::int64_t from,
                          std::int64_t most = 1'000'000);

}  // namespace lockstep::cli
