// The commands of the `lockstep` program. Each takes the words behind its name, returns the exit
// code and throws UsageError for what the caller has to change.
#pragma once

#include <span>
#include <string>

namespace lockstep::cli {

int run_launch(std::span<const std::string> arguments);

}  // namespace lockstep::cli
