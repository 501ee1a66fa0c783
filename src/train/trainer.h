// Model, data, engine and optimizer of one run on one rank: what a step and a validation do.
#pragma once

#include "data/leaf_grid.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "data/windows.h"
#include "lockstep/checkpoint.h"
#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "models/language_model.h"
#include "train/batches.h"
#include "train/moment.h"
#include "train/options.h"
#include "train/schedule.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::train {

struct StepResult {
  std::int64_t step = 0;  // from 0
  double loss = 0;        // the mean over all leaves
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping
  double ms = 0;         // this rank's time for the whole step
  double exposed_ms = 0;
  std::int64_t forwards = 0;  // of this rank's model
  Traffic traffic;            // of this rank, for this step
  bool skipped = false;
  bool overlapped = false;  // the first bucket was exchanged before the last gradient was there
};

// How much of the text is tokenised; only on rank 0, and only where no cache has the tokens.
using OnTokenising = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

// Collective in its construction, step() and validate(): all ranks do the same.
class Trainer {
 public:
  // `world` must outlive the Trainer and is the engine's alone meanwhile. Throws UsageError for
  // data or a model that can't be trained as asked. `tokenizer`: of the options, if it is open.
  Trainer(const Options& options, Group& world, const OnTokenising& on_tokenising = {},
          std::shared_ptr<const data::Tokenizer> tokenizer = nullptr);

  // Runs the next step.
  StepResult step(const OnMoment& on_moment = {});
  std::int64_t steps_done() const { return next_step_; }

  // The mean loss in nats per token over the first eval_batches micro-batches of the validation
  // part, spread over it evenly and shared out over the ranks of `group` (a split of the world);
  // the same bits on every rank and for every number of ranks. Needs eval_batches > 0.
  double validate(Group& group);

  // Saves the state between two steps, and sets it to a saved one (checkpoint.h). Collective.
  std::string save(const std::string& folder, const SaveOptions& options);
  void load(const std::string& path);

  models::LanguageModel& model() { return *model_; }
  Parallel& parallel() { return parallel_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  const data::Tokens& tokens() const { return tokens_; }
  std::int64_t training_windows() const { return training_.count(); }

 private:
  Options options_;
  Group& world_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  data::Tokens tokens_;
  data::Split split_;
  data::Windows training_;
  std::optional<data::Windows> validation_;
  data::LeafGrid grid_;
  std::shared_ptr<models::LanguageModel> model_;
  Parallel parallel_;
  std::unique_ptr<FlatOptimizer> optimizer_;
  Schedule schedule_;
  std::int64_t next_step_ = 0;
};

}  // namespace lockstep::train
