// Going on from a checkpoint: what it says of the run that saved it, and whether this run may go on
// from there. No LibTorch here, so that `lockstep` can refuse before it starts ranks.
#pragma once

#include "train/options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::train {

// Which text a run trains on, wherever the file lies.
struct TextIdentity {
  std::int64_t tokens = 0;
  std::int64_t windows = 0;  // of --seq tokens, in the training part
  std::string hash;          // checkpoint::hash_of() all tokens

  friend bool operator==(const TextIdentity&, const TextIdentity&) = default;
};

// What a checkpoint saves of a run after `step` steps, as a JSON object: every option, the text,
// and the position in the data. Dropout is drawn from (seed, step, leaf) and the learning rate
// hangs on the step, so nothing else is needed.
std::string run_state(const Options& options, const TextIdentity& text, std::int64_t step);

// Throws UsageError naming `path`, the option, both values and the fix when the run that saved
// `state` differs in what would change its meaning: model, tokenizer, seed, sequence, sequences per
// step.
void check_same_run(const std::string& path, const std::string& state, const Options& options);
// The same for the text, which is known once its tokens are read.
void check_same_text(const std::string& path, const std::string& state, const TextIdentity& text);

// "--lr 1e-4 (was 3e-4), --ranks 1 (was 2)": options of training that differ and may; else nothing.
std::string changed_options(const std::string& state, const Options& options);

// The step that --resume goes on from.
struct ResumePoint {
  std::string path;
  std::int64_t step = 0;
};
// Nothing without --resume, and when nothing is saved in --checkpoint. Throws UsageError as above
// and when the step lies behind --steps or --stop-at; Error when its manifest is damaged.
std::optional<ResumePoint> find_resume_point(const Options& options);

// Checks the options of checkpoints against each other and against what is saved in --checkpoint.
// Throws UsageError naming the option and the fix.
void check_checkpoints(const Options& options);

}  // namespace lockstep::train
