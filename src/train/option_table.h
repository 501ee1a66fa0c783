// Every option of `lockstep train` once: its name, its help, how its text is read and written. The
// command line, --config and config.toml all go through this table.
#pragma once

#include "train/options.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

struct OptionField {
  std::string name;   // "steps": --steps on the command line, steps in config.toml
  std::string value;  // what help calls its value; empty: a switch, whose texts are true and false
  std::string help;
  // Throws UsageError: "--steps: expected …, got …".
  std::function<void(Options&, std::string_view text)> set;
  // The value in TOML; empty: the option is at a default that hangs on others, write nothing.
  std::function<std::string(const Options&)> toml;
};

// In the order of the documentation.
std::span<const OptionField> option_fields();

// An option or value that the documented command line has and this version has not.
struct NotBuiltOption {
  std::string name;
  std::string way_out;
};
std::span<const NotBuiltOption> options_not_built();

// Text as a TOML string, in double quotes.
std::string quoted(std::string_view text);

}  // namespace lockstep::train
