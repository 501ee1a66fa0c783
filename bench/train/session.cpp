#include "bench/train/session.h"

#include "bench/common/temporary_folder.h"
#include "bench/train/peers.h"
#include "bench/train/rank_options.h"
#include "bench/train/verify.h"
#include "cli/sibling.h"
#include "launch/launcher.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace lockstep::bench {
namespace {

using Json = nlohmann::json;

launch::LaunchOptions launch_options(const TrainQuestion& question, const Mode& mode,
                                     const std::string& result) {
  RankOptions rank{.print = {},
                   .stage = mode.stage,
                   .model = question.model,
                   .precision = question.precision,
                   .micro_batch = question.micro_batch,
                   .sequence = question.sequence,
                   .steps = question.steps,
                   .threads = question.threads,
                   .batches = 1,
                   .dials = mode.dials,
                   .result = result};
  launch::LaunchOptions options;
  options.ranks = question.ranks;
  if (mode.kind == Kind::threads) {
    options.ranks = 1;
    rank.threads = question.ranks * question.threads;
    rank.batches = question.ranks;
  }
  options.threads = rank.threads;
  options.command = is_peer(mode) ? peer_command(question, mode)
                                  : std::vector{cli::find_sibling("lockstep-bench-train-rank")};
  const std::vector<std::string> words = words_of(rank);
  options.command.insert(options.command.end(), words.begin(), words.end());
  return options;
}

double median_without_first(const Json& samples) {
  const auto all = samples.get<std::vector<double>>();
  return spread_of({all.begin() + 1, all.end()}).median;
}

Launch launch_of(const TrainQuestion& question, const Json& result) {
  const auto steps = result.at("step_ms").get<std::vector<double>>();
  Launch launch;
  launch.step_ms = spread_of({steps.begin() + 1, steps.end()});
  launch.forward_ms = median_without_first(result.at("forward_ms"));
  launch.backward_ms = median_without_first(result.at("backward_ms"));
  launch.update_ms = median_without_first(result.at("update_ms"));
  if (!result.at("exposed_comm_ms").is_null()) {
    launch.exposed_comm_ms = median_without_first(result.at("exposed_comm_ms"));
    launch.collectives = result.at("collectives").get<std::int64_t>();
  }
  launch.tokens_per_s =
      static_cast<double>(question.ranks * question.micro_batch * question.sequence) /
      launch.step_ms.median * 1e3;
  result.at("losses").get_to(launch.losses);
  result.at("mean_losses").get_to(launch.mean_losses);
  result.at("resident_bytes").get_to(launch.resident_bytes);
  result.at("parameters").get_to(launch.parameters);
  result.at("weights_sha256").get_to(launch.weights_sha256);
  return launch;
}

Launch run_one(const TrainQuestion& question, const Mode& mode, std::int64_t round) {
  const TemporaryFolder folder;
  const std::string path = folder.file("result.json");
  const int code = launch::launch(launch_options(question, mode, path));
  if (code == 2) {
    throw UsageError(mode.name + ": its ranks refused; see above");
  }
  if (code != 0) {
    throw Error(mode.name + ": its ranks ended with exit code " + std::to_string(code) +
                "; see above");
  }
  std::ifstream file(path);
  Launch launch = launch_of(question, Json::parse(file));
  launch.mode = mode;
  launch.round = round;
  return launch;
}

}  // namespace

Session measure(const TrainQuestion& question, const OnLaunch& on_launch) {
  Session session;
  for (std::int64_t round = 0; round < question.rounds; ++round) {
    for (const Mode& mode : question.modes) {
      session.launches.push_back(run_one(question, mode, round));
      verify(session.launches, question.precision);
      on_launch(session.launches.back());
    }
  }
  session.comparisons = compare(session.launches);
  return session;
}

}  // namespace lockstep::bench
