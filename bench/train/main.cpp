// lockstep-bench-train: what does a training step cost, against every rank training alone, one
// process with all threads, and other libraries?
#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/table.h"
#include "bench/train/options.h"
#include "bench/train/peers.h"
#include "bench/train/report.h"
#include "bench/train/session.h"
#include "checkpoint/pending_file.h"

#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

void show_launch(const Launch& launch) {
  std::fprintf(stderr, "round %lld  %-20s  %s ms per step\n",
               static_cast<long long>(launch.round + 1), launch.mode.name.c_str(),
               fixed(launch.step_ms.median, 1).c_str());
}

void print_table(const TrainQuestion& question, const Session& session,
                 const std::vector<LeftOut>& left_out) {
  std::printf("%s\n%s per rank, %d ranks x %d threads, %lld rounds of launches of %lld steps\n",
              describe(this_machine()).c_str(), title(question).c_str(), question.ranks,
              question.threads, static_cast<long long>(question.rounds),
              static_cast<long long>(question.steps));
  std::printf("%s", text_of(session, left_out).c_str());
}

int run(std::span<const std::string> words) {
  TrainBenchOptions options = parse_train_bench(words);
  if (!options.print.empty()) {
    std::printf("%s", options.print.c_str());
    return 0;
  }
  TrainQuestion& question = options.question;
  const std::vector<LeftOut> left_out = add_peers(question, options.peers);
  for (const LeftOut& one : left_out) {
    std::fprintf(stderr, "%s", text_of(one).c_str());
  }
  const Session session = measure(question, show_launch);
  if (!options.plot.empty()) {
    checkpoint::write_text(options.plot, plot_of(question, session));
  }
  if (options.json) {
    std::printf("%s\n", json_of(question, session, left_out).dump(1).c_str());
  } else {
    print_table(question, session, left_out);
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run_program("lockstep bench train", argc, argv, lockstep::bench::run);
}
