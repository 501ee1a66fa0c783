// Numbers from a command line: nullopt where the option was not given; UsageError naming the
// option, what was expected and what was got.
#pragma once

#include "cli/command_line.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

struct WholeBounds {
  std::int64_t low;
  std::int64_t high;
};

std::optional<std::int64_t> whole_value(const CommandLine& line, const std::string& name,
                                        WholeBounds bounds);

// At least 0.
std::optional<double> decimal_value(const CommandLine& line, const std::string& name);

// From 0 to `most`, with units (quantity::bytes).
std::optional<std::int64_t> bytes_value(const CommandLine& line, const std::string& name,
                                        std::int64_t most);

// Whole seconds of at least 1, with units (quantity::seconds).
std::optional<std::int64_t> seconds_value(const CommandLine& line, const std::string& name);

}  // namespace lockstep::cli
