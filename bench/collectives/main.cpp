// lockstep-bench-collectives: how fast are the collectives, against the bytes they must move?
// Started alone it starts its ranks, which run this program again.
#include "base/environment.h"
#include "bench/collectives/measure.h"
#include "bench/collectives/options.h"
#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/table.h"
#include "cli/sibling.h"
#include "launch/launcher.h"
#include "lockstep/error.h"
#include "lockstep/group.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr const char* kProgram = "lockstep-bench-collectives";

using Words = std::span<const std::string>;

int start_ranks(const CollectivesOptions& options, Words words) {
  launch::LaunchOptions launch;
  launch.ranks = options.ranks;
  launch.command = {cli::find_sibling(kProgram)};
  launch.command.insert(launch.command.end(), words.begin(), words.end());
  launch.output = launch::OutputMode::rank_zero_direct;
  return launch::launch(launch);
}

// Every algorithm on one size and collective, so that what is compared is measured side by side.
std::vector<Question> questions(const CollectivesOptions& options) {
  std::vector<Question> all;
  for (const Collective collective : options.collectives) {
    for (const std::int64_t bytes : options.sizes) {
      for (const Algorithm algorithm : options.algorithms) {
        for (const bool symmetric : {true, false}) {
          if (symmetric || options.plain) {
            all.push_back({.collective = collective,
                           .dtype = options.dtype,
                           .bytes = bytes,
                           .symmetric = symmetric,
                           .algorithm = algorithm});
          }
        }
      }
    }
  }
  return all;
}

std::string algorithm_of(const Question& question) {
  const bool automatic = question.algorithm == Algorithm::automatic;  // on one host
  return std::string(lockstep::name_of(automatic ? Algorithm::direct : question.algorithm));
}

void print_table(const std::vector<Answer>& answers) {
  std::vector<std::vector<std::string>> rows{
      {"collective", "algorithm", "X", "memory", "ms", "least ms", "GB/s", "of floor"}};
  for (const Answer& answer : answers) {
    rows.push_back({name_of(answer.question.collective), algorithm_of(answer.question),
                    std::to_string(answer.question.bytes),
                    answer.question.symmetric ? "symmetric" : "plain", fixed(answer.ms, 4),
                    fixed(answer.least_ms, 4), fixed(answer.gb_per_s, 2),
                    fixed(answer.floor_share, 2)});
  }
  std::printf("%s", table(rows).c_str());
}

void print_json(const std::vector<Answer>& answers, int ranks) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Answer& answer : answers) {
    array.push_back({{"op", name_of(answer.question.collective)},
                     {"algorithm", algorithm_of(answer.question)},
                     {"dtype", lockstep::name_of(answer.question.dtype)},
                     {"ranks", ranks},
                     {"hosts", 1},
                     {"bytes", answer.question.bytes},
                     {"symmetric", answer.question.symmetric},
                     {"ms", answer.ms},
                     {"min_ms", answer.least_ms},
                     {"gb_per_s", answer.gb_per_s},
                     {"floor_share", answer.floor_share},
                     {"peer", nullptr}});
  }
  std::printf("%s\n", array.dump(1).c_str());
}

int run_rank(const CollectivesOptions& options) {
  Group world = Group::from_environment();
  if (world.size() < 2) {
    throw UsageError("a world of one rank has nothing to move; start it with --ranks 2 or more");
  }
  if (world.size() != options.ranks) {
    throw UsageError("--ranks " + std::to_string(options.ranks) + ": the world has " +
                     std::to_string(world.size()) + " ranks; leave --ranks out");
  }
  const Machine machine = this_machine();
  std::vector<Answer> answers;
  for (const Question& question : questions(options)) {
    answers.push_back(measure(world, question, machine.last_level_cache_bytes));
  }
  if (world.rank() != 0) {
    return 0;
  }
  std::fprintf(options.json ? stderr : stdout, "%s\n%d ranks, %s, results verified bit for bit\n",
               describe(machine).c_str(), options.ranks,
               std::string(lockstep::name_of(options.dtype)).c_str());
  options.json ? print_json(answers, options.ranks) : print_table(answers);
  return 0;
}

int run(Words words) {
  const auto world = environment::integer("WORLD_SIZE");
  const CollectivesOptions options = parse_collectives(words, static_cast<int>(world.value_or(2)));
  if (!options.print.empty()) {
    std::printf("%s", options.print.c_str());
    return 0;
  }
  return world ? run_rank(options) : start_ranks(options, words);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run_program("lockstep bench collectives", argc, argv,
                                      lockstep::bench::run);
}
