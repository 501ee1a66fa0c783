// From words to train::ExportOptions.
#pragma once

#include "train/options.h"

#include <span>
#include <string>

namespace lockstep::cli {

struct ExportRequest {
  std::string print;  // what --help or --version wants printed; the options mean nothing then
  train::ExportOptions options;
};

// Reads the words behind `checkpoint export`. Throws UsageError.
ExportRequest parse_export(std::span<const std::string> arguments);

}  // namespace lockstep::cli
