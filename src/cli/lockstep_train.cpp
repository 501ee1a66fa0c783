// One rank of `lockstep train`, `lockstep generate` and `lockstep checkpoint export`: the program
// that needs LibTorch. Started by `lockstep`, or by hand under any launcher that sets RANK and
// WORLD_SIZE.
#include "cli/export_options.h"
#include "cli/generate_options.h"
#include "cli/standard_output.h"
#include "cli/train_options.h"
#include "comm/from_environment.h"
#include "launch/report.h"
#include "lockstep/error.h"
#include "lockstep/group.h"
#include "train/export.h"
#include "train/generate.h"
#include "train/libtorch.h"
#include "train/options.h"
#include "train/run.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

using Words = std::span<const std::string>;

int run_train(Words arguments) {
  const int started = comm::started_ranks();
  TrainRequest request = parse_train(arguments, started);
  if (print_if_asked(request.print)) {
    return 0;
  }
  if (request.options.ranks != started) {
    throw UsageError(
        "--ranks " + std::to_string(request.options.ranks) + ": " + std::to_string(started) +
        " were started (WORLD_SIZE, or mpirun); run lockstep train, or leave --ranks out");
  }
  train::check(request.options);
  const std::chrono::duration<double> deadline(request.options.deadline_s);
  return train::run(request.options,
                    Group::from_environment(
                        {.deadline = std::chrono::ceil<std::chrono::milliseconds>(deadline)}));
}

int run_generate(Words arguments) {
  const GenerateRequest request = parse_generate(arguments);
  if (print_if_asked(request.print)) {
    return 0;
  }
  train::check(request.options);
  return train::generate(request.options);
}

int run_export(Words arguments) {
  const ExportRequest request = parse_export(arguments);
  if (print_if_asked(request.print)) {
    return 0;
  }
  train::check(request.options);
  return train::export_run(request.options);
}

int run(Words arguments) {
  const std::string mode = arguments.empty() ? "" : arguments.front();
  if (mode == "train") {
    return run_train(arguments.subspan(1));
  }
  if (mode == "generate") {
    return run_generate(arguments.subspan(1));
  }
  if (mode == "export") {
    return run_export(arguments.subspan(1));
  }
  if (mode == "libtorch") {  // what lockstep doctor asks for
    std::printf("%s\n", train::describe_libtorch().dump().c_str());
    return 0;
  }
  throw UsageError("expected train, generate or export, got '" + mode + "'; run it as lockstep " +
                   (mode.empty() ? "train" : mode));
}

// The launcher prints what is reported to it, first cause first; without one it is printed here.
void tell(const std::string& command, const std::exception& failure) {
  const std::string line = launch::one_line(failure.what());
  if (!launch::report_failure(launch::kind_of(failure), line)) {
    std::fprintf(stderr, "%s: %s\n", command.c_str(), line.c_str());
  }
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is the write's error, which names the file
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string command = "lockstep" + (arguments.empty() ? "" : " " + arguments.front());
  try {
    const int code = lockstep::cli::run(arguments);
    lockstep::cli::finish_output();
    return code;
  } catch (const lockstep::UsageError& failure) {
    lockstep::cli::tell(command, failure);
    return 2;
  } catch (const std::exception& failure) {
    lockstep::cli::tell(command, failure);
    return 1;
  }
}
