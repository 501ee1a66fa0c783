// The checkpoints of one run: goes on from one, and saves when it is time.
#pragma once

#include "train/options.h"
#include "train/resume.h"
#include "train/trainer.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::train {

class Checkpoints {
 public:
  // Collective; with --resume sets the trainer to the newest step of --checkpoint. Throws
  // UsageError and Error as find_resume_point() and load_checkpoint() do.
  Checkpoints(const Options& options, Trainer& trainer);

  // Steps done before this run, and those that it ends at (--stop-at, else --steps).
  std::int64_t first_step() const { return first_step_; }
  std::int64_t last_step() const { return last_step_; }
  // One line for the user: where it goes on, or that there was nothing to go on from.
  const std::optional<std::string>& note() const { return note_; }

  // Collective, after each step: saves every --checkpoint-every steps and at the last one,
  // returning the path. Throws what save_checkpoint() throws.
  std::optional<std::string> save_if_due();

 private:
  void resume(const ResumePoint& point);
  bool due(std::int64_t step) const;

  const Options& options_;
  Trainer& trainer_;
  TextIdentity text_;
  std::int64_t first_step_ = 0;
  std::int64_t last_step_;
  std::optional<std::int64_t> saved_;  // the step that was saved or loaded last
  std::optional<std::string> note_;
};

}  // namespace lockstep::train
