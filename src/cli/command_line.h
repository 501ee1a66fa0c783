// Command lines: which options a command has, what was given, and refusals that help.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

struct Flag {
  std::string name;   // "--steps"; with a short form "-n,--ranks"
  std::string value;  // what help calls its value ("N"); empty: a switch
  std::string help;
};

// An option of the documented command line whose feature is not built yet.
struct NotBuilt {
  std::string name;
  std::string way_out;  // what to do instead
};

enum class Rest : std::uint8_t {
  none,     // anything that is not an option is an error
  program,  // the first such word begins a program's command line
  names,    // such words are names, anywhere among the options
};

struct Command {
  std::string name;     // "lockstep train"
  std::string purpose;  // one or several lines for help
  std::vector<Flag> flags;
  std::vector<NotBuilt> not_built;
  Rest rest = Rest::none;
};

struct Given {
  std::string name;   // the long name, "--steps"
  std::string value;  // "true" for a switch
};

struct CommandLine {
  std::string print;         // what --help or --version wants printed; the rest is empty then
  std::vector<Given> given;  // in the command's order; of an option given twice the last value
  std::vector<std::string> rest;

  std::optional<std::string> value_of(std::string_view name) const;
};

// Throws UsageError: one line with the option, what was got and the fix.
CommandLine parse(const Command& command, std::span<const std::string> arguments);

// " (did you mean --steps?)", or nothing when no known word is near.
std::string suggestion(std::string_view word, std::span<const std::string> known);

// "lockstep 0.1.0".
std::string version_text();

}  // namespace lockstep::cli
