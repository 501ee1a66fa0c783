// From words to train::GenerateOptions.
#pragma once

#include "train/options.h"

#include <span>
#include <string>

namespace lockstep::cli {

struct GenerateRequest {
  std::string print;  // what --help or --version wants printed; the options mean nothing then
  train::GenerateOptions options;
};

// Reads the words behind `generate`. Throws UsageError.
GenerateRequest parse_generate(std::span<const std::string> arguments);

}  // namespace lockstep::cli
