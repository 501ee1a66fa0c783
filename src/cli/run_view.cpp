#include "cli/run_view.h"

#include "cli/config_file.h"
#include "cli/flight_checks.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Activity = comm::ProcessState::Activity;

RunState state_of_run(const std::string& folder, const Flights& flights) {
  std::error_code unreadable;
  const bool has_report = fs::exists(folder + "/report.json", unreadable);
  bool may_live = false;
  bool is_here = false;
  for (const comm::FlightFile& file : flights.files) {
    if (file.log) {
      const auto activity = flights.activity(file.log->header);
      may_live = may_live || activity != Activity::gone;
      is_here = is_here || activity.has_value();
    }
  }
  const bool lives = may_live && (is_here || !has_report);
  return lives ? RunState::running : has_report ? RunState::ended : RunState::stopped;
}

}  // namespace

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::ended:
      return "ended";
    case RunState::stopped:
      break;
  }
  return "stopped";
}

bool is_run(const std::string& folder) {
  std::error_code unreadable;
  return fs::is_regular_file(folder + "/config.toml", unreadable);
}

RunView look_at_run(const std::string& folder) {
  RunView view;
  view.folder = folder;
  try {
    for (const ConfigEntry& entry : read_config(folder + "/config.toml")) {
      view.options.emplace_back(entry.key, entry.value);
    }
  } catch (const Error&) {
    view.options.clear();  // the page shows the run without them
  }
  Flights flights;
  try {
    flights = flights_of(folder + "/flight");
  } catch (const Error&) {
    flights = {};  // it has not come so far, or they were removed
  }
  view.state = state_of_run(folder, flights);
  if (!flights.files.empty()) {
    view.ranks = check_flights(flights);
  }
  return view;
}

MetricsPiece read_metrics(const std::string& folder, std::int64_t from, std::int64_t most) {
  std::ifstream file(folder + "/metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) {
    return {};
  }
  const auto size = static_cast<std::int64_t>(file.tellg());
  // A run that goes on from a checkpoint writes the file anew, without what came after that.
  if (from > 0 && (from > size || file.seekg(from - 1).get() != '\n')) {
    from = 0;
  }
  std::string text(static_cast<std::size_t>(std::min(size - from, most)), '\0');
  file.clear();
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0: no whole line yet
  MetricsPiece piece;
  piece.from = from;
  piece.next = from + static_cast<std::int64_t>(text.size());
  piece.more = !text.empty() && piece.next < size;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    auto line = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                      text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                                      /*allow_exceptions=*/false);
    if (line.is_object()) {
      piece.lines.push_back(std::move(line));
    }
    begin = end + 1;
  }
  return piece;
}

}  // namespace lockstep::cli
