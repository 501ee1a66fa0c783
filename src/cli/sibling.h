// The programs that are installed beside `lockstep`.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cli {

// Path of the program `name` in the folder of the running program. Throws SystemError when it is
// not there: this Lockstep was built without LibTorch.
std::string find_sibling(const std::string& name);

// Becomes that program; does not return. Throws SystemError.
[[noreturn]] void become_sibling(const std::string& name, std::vector<std::string> arguments);

}  // namespace lockstep::cli
