#include "cli/commands.h"
#include "cli/generate_options.h"
#include "cli/sibling.h"
#include "cli/standard_output.h"
#include "cli/train_options.h"
#include "launch/launcher.h"
#include "train/memory_fit.h"

#include <vector>

namespace lockstep::cli {
namespace {

// The ranks read the same words, so that there is one way from words to options.
std::vector<std::string> behind(const std::string& first, Words arguments) {
  std::vector<std::string> words{first};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

int run_train(Words arguments) {
  const TrainRequest request = parse_train(arguments);
  if (print_if_asked(request.print)) {
    return 0;
  }
  const train::Options& options = request.options;
  train::check(options);
  train::check_fits(options, train::memory_budget(options));
  launch::LaunchOptions launch;
  launch.ranks = options.ranks;
  launch.command = behind("train", arguments);
  launch.command.insert(launch.command.begin(), find_sibling("lockstep-train"));
  launch.threads = options.threads;
  if (options.reproducible && !options.threads) {
    launch.threads = 1;  // bits differ between numbers of threads
  }
  launch.deadline_s = static_cast<std::int64_t>(options.deadline_s);
  launch.over_mpi = options.over_network();
  launch.output = launch::OutputMode::rank_zero_direct;
  return launch::launch(launch);
}

int run_generate(Words arguments) {
  const GenerateRequest request = parse_generate(arguments);
  if (print_if_asked(request.print)) {
    return 0;
  }
  train::check(request.options);
  become_sibling("lockstep-train", behind("generate", arguments));
}

}  // namespace lockstep::cli
