// lockstep-bench-acceptance: does this machine hold every bound that the project promises?
#include "bench/acceptance/bounds.h"
#include "bench/acceptance/memory.h"
#include "bench/acceptance/options.h"
#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/table.h"
#include "bench/tokenize/measure.h"
#include "lockstep/error.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

std::vector<Judgement> judge_speed(const TrainBounds& bounds) {
  const auto show = [&](const Launch& launch) {
    std::fprintf(stderr, "%s  round %lld  %-12s  %s ms per step\n", title(bounds.question).c_str(),
                 static_cast<long long>(launch.round + 1), launch.mode.name.c_str(),
                 fixed(launch.step_ms.median, 1).c_str());
  };
  try {
    return judge(bounds, measure(bounds.question, show));
  } catch (const std::exception& failure) {
    return judge(bounds, {}, failure.what());
  }
}

std::vector<Judgement> judge_memory(const MemoryQuestion& question) {
  try {
    return judge(question, measure_memory(question));
  } catch (const std::exception& failure) {
    return judge(question, std::nullopt, failure.what());
  }
}

Judgement judge_tokenizing(const std::string& python) {
  Judgement judgement{.bound = tokenize_bound(), .value = std::nullopt, .failure = {}};
  try {
    const TokenizeOptions options{.print = {}, .threads = this_machine().cores, .python = python};
    judgement.value = measure_tokenizing(options, [](const TokenizeRound&) {}).ratio;
  } catch (const std::exception& failure) {
    judgement.failure = failure.what();
  }
  return judgement;
}

int run(std::span<const std::string> words) {
  const AcceptanceOptions options = parse_acceptance(words);
  if (!options.print.empty()) {
    std::printf("%s", options.print.c_str());
    return 0;
  }
  std::vector<Judgement> judgements;
  for (const TrainBounds& bounds : train_bounds(options.python)) {
    std::ranges::copy(judge_speed(bounds), std::back_inserter(judgements));
  }
  for (const MemoryQuestion& question : memory_questions()) {
    std::ranges::copy(judge_memory(question), std::back_inserter(judgements));
  }
  judgements.push_back(judge_tokenizing(options.python));
  const auto missed = std::ranges::count_if(
      judgements, [](const Judgement& judgement) { return !holds(judgement); });
  std::printf("%s\n%s%zu bounds, %lld missed\n", describe(this_machine()).c_str(),
              table(rows_of(judgements)).c_str(), judgements.size(),
              static_cast<long long>(missed));
  return options.require && missed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run_program("lockstep bench acceptance", argc, argv,
                                      lockstep::bench::run);
}
