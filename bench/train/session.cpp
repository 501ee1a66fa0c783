#include "bench/train/session.h"

#include "bench/common/temporary_folder.h"
#include "bench/train/rank_options.h"
#include "cli/sibling.h"
#include "launch/launcher.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>

namespace lockstep::bench {
namespace {

using Json = nlohmann::json;

bool is_pytorch(const std::string& stage) { return stage == kPyTorch || stage == kPyTorchTuned; }

std::vector<std::string> command_of(const TrainQuestion& question, const std::string& stage,
                                    const std::string& result) {
  const std::vector<std::string> words = words_of({.print = {},
                                                   .stage = stage,
                                                   .model = question.model,
                                                   .precision = question.precision,
                                                   .micro_batch = question.micro_batch,
                                                   .sequence = question.sequence,
                                                   .steps = question.steps,
                                                   .threads = question.threads,
                                                   .result = result});
  std::vector<std::string> command{cli::find_sibling("lockstep-bench-train-rank")};
  if (is_pytorch(stage)) {
    // The wheel alone has no NumPy, and torch says so each time.
    command = {question.python, "-W", "ignore:Failed to initialize NumPy", LOCKSTEP_BENCH_PEER};
  }
  command.insert(command.end(), words.begin(), words.end());
  return command;
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
  launch.exposed_comm_ms = median_without_first(result.at("exposed_comm_ms"));
  launch.tokens_per_s =
      static_cast<double>(question.ranks * question.micro_batch * question.sequence) /
      launch.step_ms.median * 1e3;
  result.at("losses").get_to(launch.losses);
  result.at("resident_bytes").get_to(launch.resident_bytes);
  result.at("parameters").get_to(launch.parameters);
  result.at("weights_sha256").get_to(launch.weights_sha256);
  return launch;
}

Launch run_one(const TrainQuestion& question, const std::string& stage, std::int64_t round) {
  const TemporaryFolder folder;
  const std::string path = folder.file("result.json");
  launch::LaunchOptions options;
  options.ranks = question.ranks;
  options.threads = question.threads;
  options.command = command_of(question, stage, path);
  const int code = launch::launch(options);
  if (code == 2) {
    throw UsageError("stage " + stage + ": its ranks refused; see above");
  }
  if (code != 0) {
    throw Error("stage " + stage + ": its ranks ended with exit code " + std::to_string(code) +
                "; see above");
  }
  std::ifstream file(path);
  Launch launch = launch_of(question, Json::parse(file));
  launch.stage = stage;
  launch.round = round;
  return launch;
}

[[noreturn]] void refuse(const Launch& one, const Launch& other, const std::string& what) {
  throw Error("launches disagree: " + what + " of " + one.stage + " in round " +
              std::to_string(one.round + 1) + " and of " + other.stage + " in round " +
              std::to_string(other.round + 1) + " differ; their times can't be compared");
}

std::vector<double> medians_of(const std::vector<Launch>& launches, const std::string& stage) {
  std::vector<double> medians;
  for (const Launch& launch : launches) {
    if (launch.stage == stage) {
      medians.push_back(launch.step_ms.median);
    }
  }
  return medians;
}

}  // namespace

Session measure(const TrainQuestion& question, const OnLaunch& on_launch) {
  Session session;
  for (std::int64_t round = 0; round < question.rounds; ++round) {
    for (const std::string& stage : question.stages) {
      session.launches.push_back(run_one(question, stage, round));
      verify(session.launches);
      on_launch(session.launches.back());
    }
  }
  session.comparisons = compare(session.launches);
  return session;
}

void verify(const std::vector<Launch>& launches) {
  std::map<std::string, const Launch*> first_of;
  for (const Launch& launch : launches) {
    if (!std::ranges::all_of(launch.losses, [](double loss) { return std::isfinite(loss); })) {
      throw Error("stage " + launch.stage + ": a loss is not finite; its times mean nothing");
    }
    const Launch& same = *first_of.try_emplace(launch.stage, &launch).first->second;
    if (launch.losses != same.losses || launch.weights_sha256 != same.weights_sha256) {
      refuse(same, launch, "losses or weights");
    }
    const Launch& first = launches.front();
    if (launch.parameters != first.parameters) {
      refuse(first, launch, "numbers of parameters");
    }
    const bool ours = !is_pytorch(launch.stage) && !is_pytorch(first.stage);
    if (ours && launch.losses.front() != first.losses.front()) {
      refuse(first, launch, "first losses");
    }
  }
}

std::vector<Comparison> compare(const std::vector<Launch>& launches) {
  using Pair = std::array<const char*, 2>;
  std::vector<Comparison> comparisons;
  for (const auto& [stage, yardstick] :
       {Pair{"ddp", "apart"}, Pair{"apart", kPyTorch}, Pair{"apart", kPyTorchTuned}}) {
    const std::vector<double> numerators = medians_of(launches, stage);
    const std::vector<double> denominators = medians_of(launches, yardstick);
    if (!numerators.empty() && !denominators.empty()) {
      comparisons.push_back({stage, yardstick, spread_of(ratios(numerators, denominators))});
    }
  }
  return comparisons;
}

}  // namespace lockstep::bench
