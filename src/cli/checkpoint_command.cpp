#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/export_options.h"
#include "cli/sibling.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr const char* kHelp =
    "Converts what a run left behind.\n"
    "Usage: lockstep checkpoint export [OPTIONS]     (--help for its options)\n"
    "\n"
    "  export   A finished run's model as a folder for Hugging Face's transformers\n"
    "  list, verify (not built yet)\n";

[[noreturn]] void refuse(const std::string& word) {
  constexpr std::array kLater{"list", "verify"};
  const bool later = std::ranges::find(kLater, word) != kLater.end();
  throw UsageError(
      (word.empty() ? "which one?" : word + (later ? ": not built yet" : ": unknown")) +
      "; use lockstep checkpoint export");
}

}  // namespace

int run_checkpoint(Words arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--help" || first == "-h") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (first == "--version") {
    std::printf("%s\n", version_text().c_str());
    return 0;
  }
  if (first != "export") {
    refuse(first);
  }
  const ExportRequest request = parse_export(arguments.subspan(1));
  if (!request.print.empty()) {
    std::fputs(request.print.c_str(), stdout);
    return 0;
  }
  train::check(request.options);
  become_sibling("lockstep-train", {arguments.begin(), arguments.end()});
}

}  // namespace lockstep::cli
