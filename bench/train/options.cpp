#include "bench/train/options.h"

#include "bench/common/program.h"
#include "cli/values.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace lockstep::bench {
namespace {

cli::Command syntax() {
  return {.name = "lockstep bench train",
          .purpose =
              "Times training steps of --stages against each other on random tokens.\n"
              "apart: every rank trains alone, meeting the others at a barrier before and after\n"
              "each step; what data parallelism should cost. Launches alternate; a launch counts\n"
              "as the median of its steps without the first one; a verdict is the median of the\n"
              "ratios within a round, printed with the least and the most.",
          .flags = {{"--ranks", "N", "Ranks to start (2)"},
                    {"--threads", "N", "Compute threads of a rank (1)"},
                    {"--model", "NAME", "As for lockstep train (gpt2-124m)"},
                    {"--precision", "NAME", "f32 or bf16 (f32)"},
                    {"--micro-batch", "N", "Sequences of a rank's step (1)"},
                    {"--seq", "N", "Tokens of a sequence (128)"},
                    {"--stages", "LIST", "Of apart, ddp, zero1, zero2, zero3 (apart,ddp)"},
                    {"--pairs", "N", "Rounds of launches (5)"},
                    {"--steps", "N", "Steps of a launch, the first one not counted (6)"},
                    {"--peers", "",
                     "PyTorch's own training apart too, without and with our malloc settings"},
                    {"--python", "FILE", "Interpreter with torch for --peers (.deps/venv's)"},
                    {"--json", "", "Print a JSON object instead of tables"}},
          .not_built = {{"--sweep", "run one bench train per value"},
                        {"--plot", "draw it from --json"}},
          .rest = cli::Rest::none};
}

std::vector<std::string> stages_of(const cli::CommandLine& line) {
  std::vector<std::string> stages = list_value(line, "--stages", "apart,ddp");
  for (const std::string& stage : stages) {
    if (std::ranges::find(kTimedStages, stage) == kTimedStages.end()) {
      throw UsageError("--stages " + stage + ": use some of apart, ddp, zero1, zero2, zero3");
    }
  }
  return stages;
}

std::string precision_of(const cli::CommandLine& line) {
  const std::string precision = line.value_of("--precision").value_or("f32");
  if (precision != "f32" && precision != "bf16") {
    throw UsageError("--precision " + precision + ": expected f32 or bf16");
  }
  return precision;
}

}  // namespace

TrainBenchOptions parse_train_bench(std::span<const std::string> words) {
  constexpr cli::WholeBounds kCounts{1, 1024};
  constexpr cli::WholeBounds kSizes{1, 1 << 20};
  const cli::CommandLine line = cli::parse(syntax(), words);
  TrainBenchOptions options{.print = line.print, .question = {}, .json = false};
  options.json = line.value_of("--json").has_value();
  TrainQuestion& question = options.question;
  question.ranks = static_cast<int>(cli::whole_value(line, "--ranks", kCounts).value_or(2));
  question.threads = static_cast<int>(cli::whole_value(line, "--threads", kCounts).value_or(1));
  question.model = line.value_of("--model").value_or(question.model);
  question.precision = precision_of(line);
  question.micro_batch = cli::whole_value(line, "--micro-batch", kSizes).value_or(1);
  question.sequence = cli::whole_value(line, "--seq", kSizes).value_or(128);
  question.stages = stages_of(line);
  question.rounds = cli::whole_value(line, "--pairs", kCounts).value_or(5);
  // The first step sets up what the others reuse, so one is none.
  question.steps = cli::whole_value(line, "--steps", {2, 1 << 20}).value_or(6);
  question.python = line.value_of("--python").value_or(default_python());
  if (line.value_of("--peers")) {
    question.stages.insert(question.stages.end(), {kPyTorch, kPyTorchTuned});
    check_python(question.python);
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
