// The one place where environment variables are read, and the table of all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::environment {

struct Variable {
  std::string_view name;
  std::string_view set_by;   // "user", "launcher", …
  std::string_view meaning;  // one line, as `lockstep --help` and the docs print it
};

// Every variable the project reads or sets, in the order of the documentation.
std::span<const Variable> table();

// The value of a variable of the table (anything else breaks an invariant); empty counts as unset.
std::optional<std::string> text(std::string_view name);

// The same as a whole number. Throws UsageError naming the variable when it is not one.
std::optional<std::int64_t> integer(std::string_view name);

// All variables of this process as "NAME=value", known ones or not: what a child inherits.
std::vector<std::string> inherited();
// The same with `own` ("NAME=value" too), which replace what has their names.
std::vector<std::string> inherited_with(const std::vector<std::string>& own);

// Where caches live: $LOCKSTEP_CACHE, else $XDG_CACHE_HOME/lockstep, else $HOME/.cache/lockstep.
// Throws UsageError when none of them is set. Does not create it.
std::string cache_directory();

}  // namespace lockstep::environment
