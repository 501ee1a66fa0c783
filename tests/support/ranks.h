// Runs a test's body on several real processes, one rank each.
#pragma once

#include "lockstep/group.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::test {

struct RankResult {
  std::vector<double> values;  // what the body returned
  std::string error;           // of the exception it threw, else of the first expectation that
                               // failed in it; empty: neither
  int status = 0;              // as waitpid gives it
};

struct RanksOptions {
  std::chrono::seconds deadline{30};     // of the group
  std::chrono::seconds test_limit{120};  // after which ranks are killed and the test fails
};

// Forks `ranks` processes, each with the world's Group, and waits for all of them. The calling
// process must not have started threads (LibTorch kernels included).
std::vector<RankResult> run_ranks(int ranks, const std::function<std::vector<double>(Group&)>& body,
                                  const RanksOptions& options = {});

}  // namespace lockstep::test
