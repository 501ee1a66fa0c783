#include "bench/train/options.h"

#include "bench/common/program.h"
#include "checkpoint/writable_file.h"
#include "cli/values.h"
#include "lockstep/error.h"

#include <algorithm>
#include <unistd.h>

namespace lockstep::bench {
namespace {

cli::Command syntax() {
  return {
      .name = "lockstep bench train",
      .purpose =
          "Times training steps of --stages against each other on random tokens.\n"
          "apart: every rank trains alone, meeting the others at a barrier before and after\n"
          "each step; what data parallelism should cost. threads: one process with the threads\n"
          "and the batches of all ranks, what one does without data parallelism. Rounds launch\n"
          "each mode once, in turns; a launch counts as the median of its steps without the\n"
          "first one, a mode as the median of its rounds; ratios are taken within a round and\n"
          "printed with the least and the most. What modes compute is compared: the stages must\n"
          "end with the same bits, threads and each peer with nearly the losses of their kind.\n"
          "Memory is what a rank has resident where a step holds most, shared pages counted as\n"
          "its share.\n"
          "Peers: pytorch-none, pytorch-ddp, pytorch-zero1 (ZeroRedundancyOptimizer),\n"
          "pytorch-fsdp2 (fully_shard on each block), deepspeed-zero1, -zero2, -zero3; with\n"
          "-malloc behind the name they get the malloc settings of our ranks. bf16 is what each\n"
          "offers: none, ddp and zero1 keep no fp32 masters, the others and we do.",
      .flags = {{"--ranks", "N", "Ranks to start (2)"},
                {"--threads", "N", "Compute threads of a rank (1)"},
                {"--model", "NAME", "As for lockstep train (gpt2-124m)"},
                {"--precision", "NAME", "f32 or bf16 (f32)"},
                {"--micro-batch", "N", "Sequences of a rank's step (1)"},
                {"--seq", "N", "Tokens of a sequence (128)"},
                {"--stages", "LIST",
                 "Of apart, threads, ddp, zero1, zero2, zero3 and the peers (apart,ddp)"},
                {"--peers", "",
                 "Every peer too, and pytorch-none-malloc; those whose package --python lacks are "
                 "left out by name"},
                {"--python", "FILE",
                 "Interpreter of the peers (that of scripts/deepspeed where it was run, "
                 "else .deps/venv's)"},
                {"--sweep", "DIAL",
                 "Each stage at several values of bucket, unit or overlap (bucket and overlap of "
                 "ddp, unit of zero3)"},
                {"--pairs", "N", "Rounds of launches (5)"},
                {"--steps", "N", "Steps of a launch, the first one not counted (6)"},
                {"--json", "", "Print a JSON object instead of tables"},
                {"--plot", "FILE", "Draw the step times as bars into an SVG file"}},
      .not_built = {},
      .rest = cli::Rest::none};
}

std::string precision_of(const cli::CommandLine& line) {
  const std::string precision = line.value_of("--precision").value_or("f32");
  if (precision != "f32" && precision != "bf16") {
    throw UsageError("--precision " + precision + ": expected f32 or bf16");
  }
  return precision;
}

std::vector<Mode> modes_of(const cli::CommandLine& line) {
  const auto sweep = line.value_of("--sweep");
  if (!sweep) {
    return modes_named(list_value(line, "--stages", "apart,ddp"));
  }
  const bool named = line.value_of("--stages").has_value();
  return swept(*sweep, modes_named(named ? list_value(line, "--stages", "") : stages_for(*sweep)));
}

std::string peers_python() {
  const std::string own = LOCKSTEP_BENCH_DEEPSPEED_PYTHON;
  return ::access(own.c_str(), X_OK) == 0 ? own : default_python();
}

// Every peer that --stages does not name already.
std::vector<Mode> peers_beside(const std::vector<Mode>& modes) {
  std::vector<Mode> result = peers();
  std::erase_if(result, [&](const Mode& peer) {
    return std::ranges::find(modes, peer.name, &Mode::name) != modes.end();
  });
  return result;
}

void check(const TrainBenchOptions& options) {
  if (!options.peers.empty() || std::ranges::any_of(options.question.modes, is_peer)) {
    check_python(options.question.python);
    if (!options.question.model.starts_with("gpt2-")) {
      throw UsageError("--model " + options.question.model +
                       ": the peers train GPT-2 only; use a gpt2-… model or leave the peers out");
    }
  }
  if (!options.plot.empty()) {
    checkpoint::check_writable_file("--plot", options.plot);
  }
}

}  // namespace

TrainBenchOptions parse_train_bench(std::span<const std::string> words) {
  constexpr cli::WholeBounds kCounts{1, 1024};
  constexpr cli::WholeBounds kSizes{1, 1 << 20};
  const cli::CommandLine line = cli::parse(syntax(), words);
  TrainBenchOptions options;
  options.print = line.print;
  options.json = line.value_of("--json").has_value();
  options.plot = line.value_of("--plot").value_or("");
  TrainQuestion& question = options.question;
  question.ranks = static_cast<int>(cli::whole_value(line, "--ranks", kCounts).value_or(2));
  question.threads = static_cast<int>(cli::whole_value(line, "--threads", kCounts).value_or(1));
  question.model = line.value_of("--model").value_or(question.model);
  question.precision = precision_of(line);
  question.micro_batch = cli::whole_value(line, "--micro-batch", kSizes).value_or(1);
  question.sequence = cli::whole_value(line, "--seq", kSizes).value_or(128);
  question.modes = modes_of(line);
  question.rounds = cli::whole_value(line, "--pairs", kCounts).value_or(5);
  // The first step sets up what the others reuse, so one is none.
  question.steps = cli::whole_value(line, "--steps", {2, 1 << 20}).value_or(6);
  question.python = line.value_of("--python").value_or(peers_python());
  if (line.value_of("--peers")) {
    options.peers = peers_beside(question.modes);
  }
  if (options.print.empty()) {
    check(options);
  }
  return options;
}

std::string default_python() { return LOCKSTEP_BENCH_PYTHON; }

void check_python(const std::string& python) {
  if (::access(python.c_str(), X_OK) != 0) {
    throw UsageError("--python " + python +
                     ": can't be run; set up the torch wheel with scripts/setup, or name an "
                     "interpreter that has torch");
  }
}

std::string title(const TrainQuestion& question) {
  return question.model + " " + question.precision + " " + std::to_string(question.micro_batch) +
         "x" + std::to_string(question.sequence);
}

}  // namespace lockstep::bench
