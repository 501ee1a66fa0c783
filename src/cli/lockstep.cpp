// The `lockstep` program: finds the command and says in one line what went wrong. No LibTorch here,
// so that it starts in milliseconds; what needs LibTorch runs in the programs beside it.
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/standard_output.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {
namespace {

struct Entry {
  std::string_view name;
  std::string_view purpose;
  int (*run)(Words arguments);  // nullptr: not built yet
};

constexpr std::array kCommands{
    Entry{"train", "train a model on several processes of this host", run_train},
    Entry{"launch", "start any program on several ranks and end them together", run_launch},
    Entry{"generate", "continue a text with a trained model", run_generate},
    Entry{"bench", "time collectives and training steps; check the promised bounds", run_bench},
    Entry{"plan", "memory, traffic, time and the stage to use", run_plan},
    Entry{"evaluate", "the loss of a trained model on a text", nullptr},
    Entry{"checkpoint", "list and verify checkpoints; export a trained model", run_checkpoint},
    Entry{"dash", "watch runs in the browser", run_dash},
    Entry{"doctor", "what this machine can do, and what stands in the way", run_doctor},
};

std::string help() {
  std::string text =
      "Data-parallel training for LibTorch's C++ front end.\n"
      "Usage: lockstep COMMAND [OPTIONS]     (lockstep COMMAND --help for its options)\n\n";
  for (const Entry& entry : kCommands) {
    text.append("  ").append(entry.name).append(12 - entry.name.size(), ' ').append(entry.purpose);
    text.append(entry.run == nullptr ? " (not built yet)\n" : "\n");
  }
  return text + "\n  --help, --version\n";
}

int refuse_unbuilt(const Entry& entry, Words arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--help" || first == "-h") {
    std::printf("%s: %s; not built yet\n", entry.name.data(), entry.purpose.data());
    return 0;
  }
  if (first == "--version") {
    std::printf("%s\n", version_text().c_str());
    return 0;
  }
  throw UsageError("not built yet; see lockstep --help for what is");
}

[[noreturn]] void refuse_unknown(const std::string& word) {
  std::vector<std::string> names;
  for (const Entry& entry : kCommands) {
    names.emplace_back(entry.name);
  }
  throw UsageError("no such command" + suggestion(word, names) + "; see lockstep --help");
}

int run_command(Words arguments) {
  if (arguments.empty()) {
    throw UsageError("which command? see lockstep --help");
  }
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") {
    std::fputs(help().c_str(), stdout);
    return 0;
  }
  if (first == "--version") {
    std::printf("%s\n", version_text().c_str());
    return 0;
  }
  const auto* const entry = std::ranges::find(kCommands, first, &Entry::name);
  if (entry == kCommands.end()) {
    refuse_unknown(first);
  }
  const Words rest = arguments.subspan(1);
  return entry->run == nullptr ? refuse_unbuilt(*entry, rest) : entry->run(rest);
}

void print_error(std::string text) {
  std::ranges::replace(text, '\n', ' ');  // a word of the user's may hold one; an error is one line
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  std::string name = "lockstep";
  if (!arguments.empty()) {
    name.append(" ").append(arguments.front());
  }
  try {
    const int code = lockstep::cli::run_command(arguments);
    lockstep::cli::finish_output();
    return code;
  } catch (const lockstep::UsageError& error) {
    lockstep::cli::print_error(name + ": " + error.what());
    return 2;
  } catch (const std::exception& error) {
    lockstep::cli::print_error(name + ": " + error.what());
    return 1;
  }
}
