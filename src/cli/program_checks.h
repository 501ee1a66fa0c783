// What `lockstep doctor` learns by running programs: LibTorch, MPI, and a self test of a few
// seconds.
#pragma once

#include "cli/finding.h"
#include "launch/captured.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// From how a program ended and what it printed. nullopt: it is not there.
Finding judge_libtorch(const std::optional<launch::Captured>& program);  // lockstep-train libtorch
Finding judge_mpi(const std::optional<launch::Captured>& program);       // mpirun --version
Finding judge_collectives(const std::optional<launch::Captured>& program);  // bench … --json
// `report`: the report.json that the run left; empty where it left none.
Finding judge_training(const launch::Captured& program, const std::string& report);

// Runs all of them, and looks for the text and the cache folder. Needs about five seconds; nothing
// is left behind.
std::vector<Finding> check_programs();

}  // namespace lockstep::cli
