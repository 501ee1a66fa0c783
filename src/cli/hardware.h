// The machines that `lockstep plan` knows: small files of hardware/, compiled in, and a user's own.
#pragma once

#include "plan/hardware.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// a100, h100, …
std::vector<std::string> hardware_names();

// The machine of that name, or of a file like those in hardware/. Throws UsageError naming the
// file, the key, what was expected and got.
plan::Hardware hardware_of(const std::string& name_or_file);

// A machine from the text of such a file; `where` is for messages.
plan::Hardware parse_hardware(const std::string& text, const std::string& where);

}  // namespace lockstep::cli
