// What `lockstep bench acceptance` was asked to judge.
#pragma once

#include <span>
#include <string>

namespace lockstep::bench {

struct AcceptanceOptions {
  std::string print;     // what --help or --version wants printed; the rest means nothing then
  bool require = false;  // a miss is a failure of the program
  std::string python;    // the interpreter that has torch
};

// Throws UsageError.
AcceptanceOptions parse_acceptance(std::span<const std::string> words);

}  // namespace lockstep::bench
