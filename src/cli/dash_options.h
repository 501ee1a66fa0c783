// Words of `lockstep dash`.
#pragma once

#include "cli/commands.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct DashRequest {
  std::string print;  // what --help or --version wants printed; the rest is empty then
  std::vector<std::string> folders;  // a run's, or one of runs
  int port = 0;                      // 0: a free one
};

// Throws UsageError, also for what is no folder.
DashRequest parse_dash(Words words);

}  // namespace lockstep::cli
