#include "bench/train/peers.h"

#include "launch/captured.h"
#include "lockstep/error.h"

#include <algorithm>
#include <sstream>

namespace lockstep::bench {
namespace {

// Those of `packages` that `python` can't import.
std::vector<std::string> missing_packages(const std::string& python,
                                          const std::vector<std::string>& packages) {
  launch::CapturedOptions options;
  options.command = {python, "-c",
                     "import importlib.util as u, sys\n"
                     "sys.path = [p for p in sys.path if p]\n"
                     "print(*[p for p in sys.argv[1:] if not u.find_spec(p)], sep='\\n')"};
  options.command.insert(options.command.end(), packages.begin(), packages.end());
  options.patience = std::chrono::seconds(60);
  const launch::Captured probe = launch::run_captured(options);
  if (probe.exit_code != 0) {
    throw UsageError("--python " + python + ": is no Python interpreter (exit code " +
                     std::to_string(probe.exit_code) + "); name one that has torch");
  }
  std::vector<std::string> missing;
  std::istringstream lines(probe.output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      missing.push_back(line);
    }
  }
  return missing;
}

// Why `mode` can't run; empty where it can.
std::string obstacle(const Mode& mode, const std::vector<std::string>& missing,
                     const std::string& python) {
  const std::string package = package_of(mode);
  if (std::ranges::find(missing, package) == missing.end()) {
    return "";
  }
  return python + (package == "torch"
                       ? " has no torch; run scripts/setup, or name one that has it with --python"
                       : " has no deepspeed; run scripts/deepspeed, and name "
                         ".deps/peers/deepspeed/bin/python with --python");
}

}  // namespace

std::vector<LeftOut> add_peers(TrainQuestion& question, const std::vector<Mode>& peers) {
  std::vector<LeftOut> left_out;
  if (peers.empty() && std::ranges::none_of(question.modes, is_peer)) {
    return left_out;
  }
  const auto missing = missing_packages(question.python, {"torch", "deepspeed"});
  for (const Mode& mode : question.modes) {
    const std::string reason = obstacle(mode, missing, question.python);
    if (!reason.empty()) {
      throw UsageError("--stages " + mode.name + ": " + reason);
    }
  }
  for (const Mode& peer : peers) {
    const std::string reason = obstacle(peer, missing, question.python);
    if (reason.empty()) {
      question.modes.push_back(peer);
    } else {
      left_out.push_back({peer, reason});
    }
  }
  return left_out;
}

// OpenBLAS settings that our ranks may run under are not a peer's users', and DeepSpeed looks for
// an accelerator unless told. The wheel alone has no NumPy, and torch says so each time.
std::vector<std::string> peer_command(const TrainQuestion& question, const Mode& mode) {
  const std::string program =
      mode.kind == Kind::deepspeed ? "deepspeed_train.py" : "torch_train.py";
  return {"env",
          "-u",
          "OPENBLAS_CORETYPE",
          "-u",
          "OPENBLAS_L2_SIZE",
          "DS_ACCELERATOR=cpu",
          question.python,
          "-B",
          "-W",
          "ignore:Failed to initialize NumPy",
          "-W",
          "ignore::FutureWarning",
          std::string(LOCKSTEP_BENCH_TRAINERS) + "/" + program};
}

}  // namespace lockstep::bench
