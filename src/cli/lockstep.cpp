// The `lockstep` program: finds the command and says in one line what went wrong. No LibTorch here,
// so that it starts in milliseconds; what needs LibTorch runs in the programs beside it.
#include "cli/command_line.h"
#include "cli/commands.h"
#include "lockstep/error.h"

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
  int (*run)(std::span<const std::string> arguments);
};

constexpr std::array kCommands{Entry{"launch", run_launch}};

int run_command(std::span<const std::string> arguments) {
  for (const Entry& entry : kCommands) {
    if (!arguments.empty() && arguments.front() == entry.name) {
      return entry.run(arguments.subspan(1));
    }
  }
  throw UsageError("no such command");
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string name = "lockstep" + (arguments.empty() ? "" : " " + arguments.front());
  try {
    return lockstep::cli::run_command(arguments);
  } catch (const lockstep::UsageError& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return 1;
  }
}
