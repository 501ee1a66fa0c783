// What a command printed, and whether it got out.
#pragma once

#include <string>

namespace lockstep::cli {

// Prints what --help or --version want printed; false when neither was asked for.
bool print_if_asked(const std::string& text);

// Hands what was printed to the kernel. Throws SystemError when any of it could not be written: a
// full disk must not look like success. A closed standard output is one that nobody wants.
void finish_output();

}  // namespace lockstep::cli
