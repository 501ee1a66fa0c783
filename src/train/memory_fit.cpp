#include "train/memory_fit.h"

#include "base/quantity.h"
#include "comm/memory_limits.h"
#include "data/byte_tokenizer.h"
#include "lockstep/error.h"
#include "lockstep/plan.h"
#include "models/catalogue.h"
#include "train/prediction.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace lockstep::train {
namespace {

using quantity::bytes_text;

// A small model's vocabulary is its tokenizer's, whose file is not open yet: then the least it can
// be is assumed.
models::ModelConfig configuration(const Options& options) {
  const bool bytes = options.tokenizer_spec() == "bytes";
  return models::config_of(options.model, bytes ? data::kByteVocabulary : 0);
}

// Bytes of fp32 by unit; 0: outside of all.
std::map<std::size_t, std::int64_t> drawn_by_unit(const std::vector<plan::Parameter>& parameters) {
  std::map<std::size_t, std::int64_t> drawn;
  for (const plan::Parameter& parameter : parameters) {
    drawn[parameter.unit] += parameter.elements * size_of(Dtype::f32);
  }
  return drawn;
}

// Every rank draws the whole model before its parameters move into flat memory.
std::int64_t drawn_whole(const std::map<std::size_t, std::int64_t>& by_unit) {
  std::int64_t bytes = 0;
  for (const auto& [unit, drawn] : by_unit) {
    bytes += drawn;
  }
  return bytes;
}

// Or keeps its part of each unit, and whole what is outside of all (sharded_init.h). What is drawn
// now, or is moving, is there beside.
std::int64_t drawn_in_shards(const std::map<std::size_t, std::int64_t>& by_unit,
                             const plan::Training& training) {
  std::int64_t bytes = 0;
  std::int64_t moving = 0;
  for (const auto& [unit, drawn] : by_unit) {
    bytes += unit == 0 ? drawn : drawn / training.ranks;
    moving = std::max(moving, unit == 0 ? drawn : drawn * training.unit_blocks);
  }
  return bytes + moving;
}

class Fit {
 public:
  Fit(const Options& options, const MemoryBudget& budget)
      : options_(options),
        budget_(budget),
        parameters_(planned_parameters(configuration(options), options)) {}

  void check() const {
    const plan::Ledger ledger = ledger_of(options_.stage);
    if (needed(options_.stage, ledger) <= budget_.bytes) {
      return;
    }
    throw UsageError("--stage " + std::string(name_of(options_.stage)) + ": " + options_.model +
                     " needs " + bytes_text(needed(options_.stage, ledger)) +
                     " per rank without activations (" + parts(ledger) + "), but " + budget_.text +
                     "; " + way_out() + ", or --force to try");
  }

 private:
  plan::Ledger ledger_of(Stage stage) const {
    plan::Training training = planned_training(options_);
    training.stage = stage;
    return plan::ledger(parameters_, training);
  }

  std::int64_t while_made(Stage stage, const plan::Ledger& ledger) const {
    const bool in_shards =
        shares_parameters(stage, options_.share_parameters) && !models::is_folder(options_.model);
    const auto by_unit = drawn_by_unit(parameters_);
    const std::int64_t drawn =
        in_shards ? drawn_in_shards(by_unit, planned_training(options_)) : drawn_whole(by_unit);
    return drawn + ledger.parameters;
  }

  std::int64_t needed(Stage stage, const plan::Ledger& ledger) const {
    return std::max(ledger.total(), while_made(stage, ledger));
  }

  std::string parts(const plan::Ledger& ledger) const {
    if (while_made(options_.stage, ledger) > ledger.total()) {
      return "while the model is made";
    }
    return bytes_text(ledger.parameters) + " parameters, " + bytes_text(ledger.gradients) +
           " gradients, " + bytes_text(ledger.optimizer) + " optimizer, " +
           bytes_text(ledger.transient) + " buckets in flight";
  }

  std::string way_out() const {
    for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
      const std::int64_t bytes = needed(stage, ledger_of(stage));
      if (bytes <= budget_.bytes) {
        return "the smallest stage that fits is " + std::string(name_of(stage)) + " (" +
               bytes_text(bytes) + "): use --stage " + std::string(name_of(stage));
      }
    }
    // Fewer ranks on a host leave more for each; devices have a memory of their own.
    return std::string("no stage fits: use a smaller model or ") +
           (options_.device_memory ? "more" : "fewer") + " --ranks";
  }

  const Options& options_;
  const MemoryBudget& budget_;
  std::vector<plan::Parameter> parameters_;
};

}  // namespace

MemoryBudget memory_budget(const Options& options) {
  if (options.device_memory) {
    return {*options.device_memory, "--device-memory is " + bytes_text(*options.device_memory)};
  }
  const comm::MemoryRoom room = comm::memory_room();
  return {room.bytes / options.ranks,
          bytes_text(room.bytes / options.ranks) + " are left for each (" + room.limited_by + ": " +
              bytes_text(room.bytes) + " for " + std::to_string(options.ranks) + ")"};
}

void check_fits(const Options& options, const MemoryBudget& budget) {
  if (!options.force) {
    Fit(options, budget).check();
  }
}

}  // namespace lockstep::train
