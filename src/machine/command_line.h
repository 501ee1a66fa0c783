// How this process was started.
#pragma once

#include "machine/file_tree.h"

#include <string>

namespace lockstep::machine {

// `program` and the words behind it, as a user would type them ("lockstep train --steps 20").
std::string command_line(const std::string& program, const FileTree& files = FileTree());

}  // namespace lockstep::machine
