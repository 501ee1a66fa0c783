// From words to train::Options, for `lockstep` and for the ranks that it starts.
#pragma once

#include "cli/command_line.h"
#include "train/options.h"

#include <span>
#include <string>

namespace lockstep::cli {

struct TrainRequest {
  std::string print;  // what --help or --version wants printed; the options mean nothing then
  train::Options options;
};

// Reads the words behind `train`: defaults, then --config, then the command line. `ranks`: how many
// there are unless the options say so. Throws UsageError; does not look at files other than
// --config's (train::check does).
TrainRequest parse_train(std::span<const std::string> arguments, int ranks = 1);

}  // namespace lockstep::cli
