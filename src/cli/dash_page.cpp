#include "cli/dash_page.h"

#include "cli/run_view.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

// Names of folders need not be UTF-8.
PageReply json_reply(const ordered_json& json) {
  return {200, kJsonType, json.dump(-1, ' ', false, ordered_json::error_handler_t::replace)};
}

PageReply runs_reply(const std::vector<std::string>& folders) {
  ordered_json runs = ordered_json::array();
  for (const std::string& folder : runs_in(folders)) {
    const RunView view = look_at_run(folder);
    ordered_json options = ordered_json::object();
    for (const auto& [key, value] : view.options) {
      options[key] = value;
    }
    ordered_json ranks = ordered_json::array();
    for (const Finding& finding : view.ranks) {
      ranks.push_back({{"name", finding.name},
                       {"verdict", name_of(finding.verdict)},
                       {"found", finding.found},
                       {"fix", finding.fix}});
    }
    runs.push_back({{"run", folder},
                    {"state", name_of(view.state)},
                    {"options", std::move(options)},
                    {"ranks", std::move(ranks)}});
  }
  return json_reply({{"runs", std::move(runs)}});
}

std::string value_of(const PageParameters& parameters, const std::string& name) {
  const auto found = std::ranges::find(parameters, name, &PageParameters::value_type::first);
  return found == parameters.end() ? "" : found->second;
}

PageReply metrics_reply(const std::vector<std::string>& folders, const PageParameters& parameters) {
  const std::string run = value_of(parameters, "run");
  const std::vector<std::string> runs = runs_in(folders);
  if (std::ranges::find(runs, run) == runs.end()) {
    return page_error(404, "no run '" + run + "'");
  }
  const std::string text = value_of(parameters, "from");
  std::int64_t from = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), from);
  if (!text.empty() && (wrong != std::errc() || end != text.data() + text.size() || from < 0)) {
    return page_error(400, "from: expected a number of bytes, got '" + text + "'");
  }
  const MetricsPiece piece = read_metrics(run, from);
  return json_reply(
      {{"from", piece.from}, {"next", piece.next}, {"more", piece.more}, {"lines", piece.lines}});
}

}  // namespace

std::vector<std::string> runs_in(const std::vector<std::string>& folders) {
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    if (is_run(folder)) {
      runs.push_back(folder);
      continue;
    }
    std::error_code unreadable;
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
      if (is_run(entry.path().string())) {
        inside.push_back(entry.path().string());
      }
    }
    std::ranges::sort(inside);
    runs.insert(runs.end(), inside.begin(), inside.end());
  }
  return runs;
}

PageReply dash_page(const std::vector<std::string>& folders, const std::string& path,
                    const PageParameters& parameters) {
  if (auto file = page_file("dash.html", path)) {
    return *std::move(file);
  }
  try {
    if (path == "/api/runs") {
      return runs_reply(folders);
    }
    if (path == "/api/metrics") {
      return metrics_reply(folders, parameters);
    }
  } catch (const std::exception& error) {
    return page_error(500, error.what());
  }
  return page_error(404, "nothing at " + path);
}

}  // namespace lockstep::cli
