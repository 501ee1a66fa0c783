#include "train/checkpoints.h"

#include "checkpoint/bytes.h"
#include "checkpoint/manifest.h"
#include "lockstep/checkpoint.h"

namespace lockstep::train {
namespace {

TextIdentity identify(Trainer& trainer) {
  const auto ids = trainer.tokens().ids();
  return {.tokens = static_cast<std::int64_t>(ids.size()),
          .windows = trainer.training_windows(),
          .hash = ids.visit([](auto narrow) {
            const auto* const first = reinterpret_cast<const std::uint8_t*>(narrow.data());
            return checkpoint::hash_of(checkpoint::ByteSpan(first, narrow.size_bytes()));
          })};
}

}  // namespace

Checkpoints::Checkpoints(const Options& options, Trainer& trainer)
    : options_(options), trainer_(trainer), last_step_(options.stop_at.value_or(options.steps)) {
  if (options.checkpoint.empty()) {
    return;
  }
  text_ = identify(trainer);
  if (const auto point = find_resume_point(options)) {
    resume(*point);
  } else if (options.resume) {
    note_ = "resume      nothing is saved in " + options.checkpoint + ": starts at step 0";
  }
}

void Checkpoints::resume(const ResumePoint& point) {
  const std::string state = checkpoint::read_manifest(point.path).user;
  check_same_text(point.path, state, text_);
  trainer_.load(point.path);
  first_step_ = point.step;
  saved_ = point.step;
  const std::string changed = changed_options(state, options_);
  note_ = "resume      " + point.path + (changed.empty() ? "" : ", with " + changed);
}

bool Checkpoints::due(std::int64_t step) const {
  const bool regular = options_.checkpoint_every > 0 && step % options_.checkpoint_every == 0;
  return (regular && step > 0) || step == last_step_;
}

std::optional<std::string> Checkpoints::save_if_due() {
  const std::int64_t step = trainer_.steps_done();
  if (options_.checkpoint.empty() || !due(step) || saved_ == step) {
    return std::nullopt;
  }
  saved_ = step;
  return trainer_.save(options_.checkpoint,
                       {.keep = options_.keep, .user = run_state(options_, text_, step)});
}

}  // namespace lockstep::train
