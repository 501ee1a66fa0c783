#include "cli/export_options.h"

#include "cli/command_line.h"
#include "lockstep/error.h"

namespace lockstep::cli {
namespace {

Command export_syntax() {
  return {.name = "lockstep checkpoint export",
          .purpose =
              "Writes a finished run's model as a folder for Hugging Face's transformers.\n"
              "  lockstep checkpoint export --run runs/first --to model",
          .flags = {{"--run", "DIR", "The run folder"},
                    {"--to", "DIR", "The folder to write, new or empty"}},
          .not_built = {},
          .rest = Rest::none};
}

}  // namespace

ExportRequest parse_export(std::span<const std::string> arguments) {
  const CommandLine line = parse(export_syntax(), arguments);
  ExportRequest request{.print = line.print, .options = {}};
  if (!request.print.empty()) {
    return request;
  }
  request.options.run_directory = line.value_of("--run").value_or("");
  if (request.options.run_directory.empty()) {
    throw UsageError("--run: is needed; name the folder of a finished lockstep train");
  }
  request.options.folder = line.value_of("--to").value_or("");
  if (request.options.folder.empty()) {
    throw UsageError("--to: is needed; name the folder to write");
  }
  return request;
}

}  // namespace lockstep::cli
