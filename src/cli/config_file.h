// Run files: the TOML of one level that config.toml needs. `key = value` lines; values are numbers,
// true, false, "strings" with TOML's escapes, 'strings' without; # begins a comment.
#pragma once

#include "cli/command_line.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct ConfigEntry {
  std::string key;
  std::string value;  // a string's without quotes and escapes
  int line = 0;
};

// Throws UsageError naming the file and the line.
std::vector<ConfigEntry> read_config(const std::string& path);

// The same of another option's file, which an error calls `what` ("--hardware") and for which it
// names an `example` to go by.
std::vector<ConfigEntry> read_config(const std::string& path, const std::string& what,
                                     const std::string& example);

// The same from the file's text; `where` is for messages ("--config run.toml").
std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& where);

}  // namespace lockstep::cli
