// The commands of the `lockstep` program. Each takes the words behind its name, returns the exit
// code and throws UsageError for what the caller has to change.
#pragma once

#include <span>
#include <string>

namespace lockstep::cli {

using Words = std::span<const std::string>;

int run_train(Words arguments);
int run_launch(Words arguments);
int run_generate(Words arguments);
int run_bench(Words arguments);
int run_plan(Words arguments);
int run_checkpoint(Words arguments);
int run_dash(Words arguments);
int run_doctor(Words arguments);

}  // namespace lockstep::cli
