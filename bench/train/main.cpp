// lockstep-bench-train: what does a training step cost, against every rank training alone?
#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/table.h"
#include "bench/train/options.h"
#include "bench/train/session.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

using Json = nlohmann::ordered_json;

void show_launch(const Launch& launch) {
  std::fprintf(stderr, "round %lld  %-12s  %s ms per step\n",
               static_cast<long long>(launch.round + 1), launch.stage.c_str(),
               fixed(launch.step_ms.median, 1).c_str());
}

std::string resident_text(const Launch& launch) {
  std::string text;
  for (const std::int64_t bytes : launch.resident_bytes) {
    text += (text.empty() ? "" : " ") + fixed(static_cast<double>(bytes) / 1e6, 0);
  }
  return text;
}

void print_launches(const std::vector<Launch>& launches) {
  std::vector<std::vector<std::string>> rows{{"launch", "step ms", "forward", "backward", "update",
                                              "exposed", "tokens/s", "resident MB", "last loss"}};
  for (const Launch& launch : launches) {
    rows.push_back({launch.stage + " " + std::to_string(launch.round + 1),
                    fixed(launch.step_ms.median, 1), fixed(launch.forward_ms, 1),
                    fixed(launch.backward_ms, 1), fixed(launch.update_ms, 1),
                    fixed(launch.exposed_comm_ms, 1), fixed(launch.tokens_per_s, 0),
                    resident_text(launch), fixed(launch.losses.back(), 4)});
  }
  std::printf("%s", table(rows).c_str());
}

void print_comparisons(const std::vector<Comparison>& comparisons) {
  for (const Comparison& comparison : comparisons) {
    std::printf("%s takes %s x %s (least %s, most %s)\n", comparison.stage.c_str(),
                fixed(comparison.ratio.median, 3).c_str(), comparison.yardstick.c_str(),
                fixed(comparison.ratio.least, 3).c_str(), fixed(comparison.ratio.most, 3).c_str());
  }
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.least}, {"max", spread.most}};
}

Json launch_json(const Launch& launch) {
  return {{"stage", launch.stage},
          {"round", launch.round},
          {"step_ms", spread_json(launch.step_ms)},
          {"forward_ms", launch.forward_ms},
          {"backward_ms", launch.backward_ms},
          {"update_ms", launch.update_ms},
          {"exposed_comm_ms", launch.exposed_comm_ms},
          {"tokens_per_s", launch.tokens_per_s},
          {"losses", launch.losses},
          {"resident_bytes", launch.resident_bytes},
          {"weights_sha256", launch.weights_sha256}};
}

void print_json(const TrainQuestion& question, const Session& session) {
  Json json{{"version", LOCKSTEP_VERSION},     {"machine", describe(this_machine())},
            {"model", question.model},         {"parameters", session.launches.front().parameters},
            {"ranks", question.ranks},         {"threads", question.threads},
            {"precision", question.precision}, {"micro_batch", question.micro_batch},
            {"sequence", question.sequence},   {"steps", question.steps},
            {"launches", Json::array()},       {"comparisons", Json::array()}};
  for (const Launch& launch : session.launches) {
    json["launches"].push_back(launch_json(launch));
  }
  for (const Comparison& comparison : session.comparisons) {
    json["comparisons"].push_back({{"stage", comparison.stage},
                                   {"yardstick", comparison.yardstick},
                                   {"ratio", spread_json(comparison.ratio)}});
  }
  std::printf("%s\n", json.dump(1).c_str());
}

int run(std::span<const std::string> words) {
  const TrainBenchOptions options = parse_train_bench(words);
  if (!options.print.empty()) {
    std::printf("%s", options.print.c_str());
    return 0;
  }
  const TrainQuestion& question = options.question;
  const Session session = measure(question, show_launch);
  if (options.json) {
    print_json(question, session);
    return 0;
  }
  std::printf("%s\n%s per rank, %d ranks x %d threads, launches of %lld steps\n",
              describe(this_machine()).c_str(), title(question).c_str(), question.ranks,
              question.threads, static_cast<long long>(question.steps));
  print_launches(session.launches);
  print_comparisons(session.comparisons);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run_program("lockstep bench train", argc, argv, lockstep::bench::run);
}
