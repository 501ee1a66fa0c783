#include "bench/train/rank_options.h"

#include "base/quantity.h"
#include "cli/command_line.h"
#include "cli/values.h"
#include "lockstep/error.h"

namespace lockstep::bench {
namespace {

cli::Command syntax() {
  return {.name = "lockstep-bench-train-rank",
          .purpose = "One rank of a launch of `lockstep bench train`, which starts it.",
          .flags = {{"--stage", "NAME", "apart, threads or a stage"},
                    {"--model", "NAME", "Of the models that lockstep train knows"},
                    {"--precision", "NAME", "f32 or bf16"},
                    {"--micro-batch", "N", "Sequences of a rank's step"},
                    {"--seq", "N", "Tokens of a sequence"},
                    {"--steps", "N", "Steps, the first one included"},
                    {"--threads", "N", "Compute threads"},
                    {"--batches", "N", "threads: the ranks whose batches make one"},
                    {"--bucket-mb", "MB", "As for lockstep train"},
                    {"--unit-blocks", "N", "As for lockstep train"},
                    {"--overlap", "on|off", "As for lockstep train"},
                    {"--result", "FILE", "What rank 0 writes"}},
          .not_built = {},
          .rest = cli::Rest::none};
}

Dials dials_of(const cli::CommandLine& line) {
  Dials dials;
  dials.bucket_mb = cli::decimal_value(line, "--bucket-mb");
  dials.unit_blocks = cli::whole_value(line, "--unit-blocks", {1, 1'000'000});
  if (const auto overlap = line.value_of("--overlap")) {
    if (*overlap != "on" && *overlap != "off") {
      throw UsageError("--overlap " + *overlap + ": expected on or off");
    }
    dials.overlap = *overlap == "on";
  }
  return dials;
}

}  // namespace

RankOptions parse_rank(std::span<const std::string> words) {
  const cli::CommandLine line = cli::parse(syntax(), words);
  RankOptions options;
  options.print = line.print;
  options.stage = line.value_of("--stage").value_or(options.stage);
  options.model = line.value_of("--model").value_or(options.model);
  options.precision = line.value_of("--precision").value_or(options.precision);
  options.micro_batch =
      cli::whole_value(line, "--micro-batch", {1, 1 << 20}).value_or(options.micro_batch);
  options.sequence = cli::whole_value(line, "--seq", {1, 1 << 20}).value_or(options.sequence);
  options.steps = cli::whole_value(line, "--steps", {1, 1 << 20}).value_or(options.steps);
  options.threads =
      static_cast<int>(cli::whole_value(line, "--threads", {1, 1024}).value_or(options.threads));
  options.batches = cli::whole_value(line, "--batches", {1, 1024}).value_or(options.batches);
  options.dials = dials_of(line);
  options.result = line.value_of("--result").value_or("");
  if (options.print.empty() && options.result.empty()) {
    throw UsageError("--result: needs a file; start this with lockstep bench train");
  }
  return options;
}

std::vector<std::string> words_of(const RankOptions& options) {
  std::vector<std::string> words{"--stage",       options.stage,
                                 "--model",       options.model,
                                 "--precision",   options.precision,
                                 "--micro-batch", std::to_string(options.micro_batch),
                                 "--seq",         std::to_string(options.sequence),
                                 "--steps",       std::to_string(options.steps),
                                 "--threads",     std::to_string(options.threads),
                                 "--result",      options.result};
  const auto add = [&](const char* name, const std::string& value) {
    words.insert(words.end(), {name, value});
  };
  if (options.batches != 1) {
    add("--batches", std::to_string(options.batches));
  }
  if (options.dials.bucket_mb) {
    add("--bucket-mb", quantity::text_of(*options.dials.bucket_mb));
  }
  if (options.dials.unit_blocks) {
    add("--unit-blocks", std::to_string(*options.dials.unit_blocks));
  }
  if (options.dials.overlap) {
    add("--overlap", *options.dials.overlap ? "on" : "off");
  }
  return words;
}

}  // namespace lockstep::bench
