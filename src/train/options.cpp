#include "train/options.h"

#include "base/quantity.h"
#include "base/range.h"
#include "checkpoint/writable_file.h"
#include "data/text_source.h"
#include "data/tokenizer.h"
#include "lockstep/error.h"
#include "models/catalogue.h"
#include "train/option_table.h"
#include "train/resume.h"

#include <system_error>

#include <algorithm>
#include <filesystem>
#include <unistd.h>

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

void check_model(const Options& options) {
  models::ModelConfig config = models::config_of(options.model, /*tokenizer_vocabulary=*/0);
  models::set_dropout(config, options.dropout);
  const std::int64_t context = models::facts_of(config).context;
  if (options.sequence > context) {
    throw UsageError("--seq " + std::to_string(options.sequence) + ": " + options.model +
                     " sees at most " + std::to_string(context) + " tokens; use --seq " +
                     std::to_string(context) + " or less");
  }
}

void check_stage(const Options& options) {
  if (options.stage == Stage::single && options.ranks != 1) {
    throw UsageError("--stage single: is for one rank, got --ranks " +
                     std::to_string(options.ranks) + "; use --stage ddp, or --ranks 1");
  }
  const std::string stage(name_of(options.stage));
  if (options.accumulate_in_shard == true && !shards_gradients(options.stage)) {
    throw UsageError("--accumulate-in shard: --stage " + stage +
                     " accumulates in full; use --stage zero2 or zero3, or leave it out");
  }
  if (options.unit_blocks && options.stage != Stage::zero3) {
    throw UsageError("--unit-blocks: --stage " + stage +
                     " has no units; use --stage zero3, or leave it out");
  }
  if (options.reshard && options.stage != Stage::zero3) {
    throw UsageError("--reshard: --stage " + stage +
                     " gathers no units; use --stage zero3, or leave it out");
  }
}

void check_batch(const Options& options) {
  constexpr double kMostTokens = 1e12;
  const double tokens = static_cast<double>(options.leaves()) *
                        static_cast<double>(options.micro_batch) *
                        static_cast<double>(options.sequence);
  if (tokens > kMostTokens) {
    throw UsageError("--micro-batch " + std::to_string(options.micro_batch) +
                     ": ranks x --accumulate x --micro-batch x --seq is more than 1e12 tokens per "
                     "step; lower one of them");
  }
}

// The largest power of two that is at most n ≥ 1.
std::int64_t power_of_two_below(std::int64_t n) {
  std::int64_t power = 1;
  while (power <= n / 2) {
    power *= 2;
  }
  return power;
}

// The summation tree inside a rank is a subtree of the whole one only for powers of two.
void check_reproducible(const Options& options) {
  if (!options.reproducible ||
      (is_power_of_two(options.ranks) && is_power_of_two(options.accumulate))) {
    return;
  }
  const std::int64_t leaves = options.leaves();
  const std::int64_t below = power_of_two_below(leaves);
  const std::int64_t nearest = leaves - below <= below * 2 - leaves ? below : below * 2;
  const std::int64_t ranks = power_of_two_below(options.ranks);
  throw UsageError("--reproducible: --ranks and --accumulate must be powers of two, got " +
                   std::to_string(options.ranks) + " x " + std::to_string(options.accumulate) +
                   " = " + std::to_string(leaves) + " micro-batches; the nearest that works is " +
                   std::to_string(nearest) + ": --ranks " + std::to_string(ranks) +
                   " --accumulate " + std::to_string(std::max<std::int64_t>(1, nearest / ranks)));
}

void check_optimizer(const Options& options) {
  if (options.optimizer != OptimizerName::sgd && options.momentum > 0) {
    throw UsageError("--momentum " + quantity::text_of(options.momentum) +
                     ": adamw has moments of its own; use --optimizer sgd, or leave it out");
  }
}

void check_data(const Options& options) {
  const data::TextSource source = data::inspect(data::resolve(options.data));
  if (options.tokenizer_spec() != "bytes") {
    return;  // how many tokens there are shows only once the text is encoded
  }
  // The last tenth is for validation; a sequence predicts the token behind it too.
  const std::int64_t training = source.bytes - source.bytes / 10;
  if (training <= options.sequence) {
    throw UsageError("--data " + options.data + ": " + std::to_string(training) +
                     " bytes for training hold no sequence of " + std::to_string(options.sequence) +
                     " + 1; use a longer text or a smaller --seq");
  }
}

// A folder is at `path` or can be made there: the nearest parent that exists is a folder to write
// to.
void check_writable_folder(const std::string& option, const std::string& path) {
  fs::path nearest = fs::absolute(path).lexically_normal();
  std::error_code ignored;
  while (!fs::exists(nearest, ignored) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  if (fs::is_symlink(path, ignored) && !fs::exists(path, ignored)) {
    throw UsageError(option + " " + path + ": is a link to nothing; choose another folder");
  }
  if (!fs::is_directory(nearest, ignored)) {
    throw UsageError(option + " " + path + ": " + nearest.string() +
                     " is a file; choose another folder");
  }
  if (::access(nearest.c_str(), W_OK) != 0) {
    throw UsageError(option + " " + path + ": " + nearest.string() +
                     " can't be written; choose another folder");
  }
}

void check_run_folder(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    throw UsageError("--run " + path +
                     ": is no folder; name the run folder of a finished lockstep train");
  }
}

}  // namespace

std::int64_t Options::warmup_steps() const {
  return warmup.value_or(std::min<std::int64_t>(100, steps / 10));
}

std::string Options::tokenizer_spec() const {
  if (!tokenizer.empty()) {
    return tokenizer;
  }
  const std::string own = model + "/tokenizer.json";
  return models::is_folder(model) && fs::exists(own) ? own : "bytes";
}

void check(const Options& options) {
  check_model(options);
  check_stage(options);
  check_batch(options);
  check_reproducible(options);
  check_optimizer(options);
  data::check_tokenizer(options.tokenizer_spec());
  check_data(options);
  if (!options.report.empty()) {
    checkpoint::check_writable_file("--report", options.report);
  }
  if (!options.trace.empty()) {
    checkpoint::check_writable_file("--trace", options.trace);
  }
  if (!options.checkpoint.empty()) {
    check_writable_folder("--checkpoint", options.checkpoint);
  }
  check_checkpoints(options);
  check_writable_folder("--run", options.run_directory.empty() ? "." : options.run_directory);
}

std::string to_toml(const Options& options) {
  std::string text = "# Start the same run again with: lockstep train --config THIS_FILE\n";
  for (const OptionField& field : option_fields()) {
    const std::string value = field.toml(options);
    if (!value.empty()) {
      text.append(field.name).append(" = ").append(value).append("\n");
    }
  }
  return text;
}

void check(const GenerateOptions& options) { check_run_folder(options.run_directory); }

void check(const ExportOptions& options) {
  check_run_folder(options.run_directory);
  check_writable_folder("--to", options.folder);
  std::error_code ignored;
  if (fs::is_directory(options.folder, ignored) && !fs::is_empty(options.folder, ignored)) {
    throw UsageError("--to " + options.folder +
                     ": holds files already; name a new folder or an empty one");
  }
}

}  // namespace lockstep::train
