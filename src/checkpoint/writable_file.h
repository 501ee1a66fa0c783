// Whether a result can be written, asked before the work that makes it.
#pragma once

#include <string>

namespace lockstep::checkpoint {

// A file can be made or replaced at `path`: it is none yet or a regular one, and its folder exists
// and may be written. Throws UsageError with `option`, which named it, and the way out.
void check_writable_file(const std::string& option, const std::string& path);

}  // namespace lockstep::checkpoint
