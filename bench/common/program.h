// What the bench programs share: how they end, and how they read lists.
#pragma once

#include "cli/command_line.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::bench {

// Runs a program's body with the words behind its name and returns the exit code: the body's, 2
// after a UsageError, 1 after any other exception. The error is told to the launcher where there is
// one, else printed as one line behind `name`.
int run_program(const std::string& name, int argc, char** argv,
                const std::function<int(std::span<const std::string>)>& body);

// The words of "a,b,c"; `fallback` where the option was not given. Throws UsageError for an empty
// one.
std::vector<std::string> list_value(const cli::CommandLine& line, const std::string& name,
                                    const std::string& fallback);

}  // namespace lockstep::bench
