#include "cli/dash_options.h"

#include "cli/command_line.h"
#include "cli/values.h"
#include "lockstep/error.h"

#include <filesystem>

namespace lockstep::cli {
namespace {

constexpr const char* kRuns = "runs";  // where train makes a run's folder

Command dash_syntax() {
  return {
      .name = "lockstep dash",
      .purpose =
          "Shows train runs in a browser, while they write and after: loss, tokens/s, gradient\n"
          "norm, exposed communication and memory, runs over each other, and what each rank "
          "does.\n"
          "Usage: lockstep dash [FOLDER…]: a run's, or one that holds runs (runs). Serves this "
          "machine only.",
      .flags = {{"--port", "N", "Port to listen on (a free one)"}},
      .not_built = {},
      .rest = Rest::names};
}

}  // namespace

DashRequest parse_dash(Words words) {
  const CommandLine line = parse(dash_syntax(), words);
  DashRequest request;
  request.print = line.print;
  if (!line.print.empty()) {
    return request;
  }
  request.port = static_cast<int>(whole_value(line, "--port", {0, 65535}).value_or(0));
  request.folders = line.rest;
  if (request.folders.empty()) {
    request.folders.emplace_back(kRuns);
  }
  for (const std::string& folder : request.folders) {
    std::error_code unreadable;
    if (!std::filesystem::is_directory(folder, unreadable)) {
      throw UsageError("'" + folder + "' is no folder" +
                       (line.rest.empty() ? "; name one that lockstep train wrote to (--run), or "
                                            "one that holds such folders"
                                          : "; expected a run's (lockstep train --run), or one "
                                            "that holds runs"));
    }
  }
  return request;
}

}  // namespace lockstep::cli
