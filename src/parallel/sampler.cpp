#include "base/batch_share.h"
#include "base/epoch_order.h"
#include "lockstep/data.h"

#include <algorithm>
#include <numeric>

namespace lockstep {

struct Sampler::State {
  // positioned: the next iteration begins at `position`. running: one has begun.
  enum class Phase : std::uint8_t { positioned, running };

  std::int64_t samples;
  SamplerOptions options;
  BatchCut cut;
  SamplePosition position = {};
  std::int64_t begun_at = 0;  // position.samples when the iteration began
  Phase phase = Phase::positioned;
  std::vector<std::int64_t> order = {};
  std::int64_t order_epoch = -1;

  void check_size() const;
  void begin();
  SamplePosition normalised(SamplePosition at) const;
  std::vector<std::size_t> indices(Range range);
};

void Sampler::State::check_size() const {
  const bool repeats = options.remainder == Remainder::pad && samples > 0;
  if (samples < cut.ranks && !repeats) {
    throw UsageError("Sampler: a data set of " + std::to_string(samples) +
                     " samples leaves ranks without any; expected at least one for each of " +
                     std::to_string(cut.ranks) +
                     " ranks: use fewer ranks, or Remainder::pad, which repeats samples");
  }
}

void Sampler::State::begin() {
  if (phase == Phase::running) {
    position = {position.epoch + 1, 0};
  }
  begun_at = position.samples;
  phase = Phase::running;
}

// At an epoch's end the next sample is the next epoch's first.
SamplePosition Sampler::State::normalised(SamplePosition at) const {
  const std::int64_t left = samples - at.samples;
  const bool ended = options.remainder == Remainder::drop ? left < cut.ranks : left == 0;
  return ended ? SamplePosition{at.epoch + 1, 0} : at;
}

// Of `range`, which counts from the position.
std::vector<std::size_t> Sampler::State::indices(Range range) {
  if (order_epoch != position.epoch) {
    if (options.shuffle) {
      order = epoch_order(samples, options.seed, position.epoch);
    } else {
      order.resize(static_cast<std::size_t>(samples));
      std::iota(order.begin(), order.end(), 0);
    }
    order_epoch = position.epoch;
  }
  std::vector<std::size_t> chosen;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const auto at = static_cast<std::size_t>((position.samples + i) % samples);
    chosen.push_back(static_cast<std::size_t>(order[at]));
  }
  return chosen;
}

Sampler::Sampler(std::int64_t samples, const Group& group, const SamplerOptions& options)
    : state_(std::make_shared<State>(State{
          .samples = samples,
          .options = options,
          .cut = {.ranks = group.size(), .rank = group.rank(), .remainder = options.remainder}})) {
  state_->check_size();
}

void Sampler::set_epoch(std::int64_t epoch) {
  if (epoch < 0) {
    throw UsageError("Sampler::set_epoch: expected an epoch ≥ 0, got " + std::to_string(epoch));
  }
  const bool restored = state_->phase == State::Phase::positioned;
  if (!restored || state_->position.epoch != epoch) {
    state_->position = {epoch, 0};
  }
  state_->phase = State::Phase::positioned;
}

SamplePosition Sampler::position() const { return state_->normalised(state_->position); }

SamplePosition Sampler::position_after(std::int64_t batches, std::int64_t batch_size) const {
  const std::int64_t taken = batches * batch_size * state_->cut.ranks;
  return state_->normalised(
      {state_->position.epoch, std::min(state_->samples, state_->begun_at + taken)});
}

void Sampler::restore(const SamplePosition& position) {
  if (position.epoch < 0 || position.samples < 0 || position.samples > state_->samples) {
    throw UsageError("Sampler::restore: epoch " + std::to_string(position.epoch) + ", sample " +
                     std::to_string(position.samples) + " is outside a data set of " +
                     std::to_string(state_->samples) +
                     " samples; restore a position of the same data set");
  }
  state_->position = state_->normalised(position);
  state_->phase = State::Phase::positioned;
}

void Sampler::reset(std::optional<std::size_t> new_size) {
  if (new_size && static_cast<std::int64_t>(*new_size) != state_->samples) {
    state_->samples = static_cast<std::int64_t>(*new_size);
    state_->check_size();
    state_->order_epoch = -1;
    state_->position.samples = 0;
  }
  state_->begin();
}

std::optional<std::vector<std::size_t>> Sampler::next(std::size_t batch_size) {
  if (batch_size == 0) {
    throw UsageError("Sampler: expected a batch size ≥ 1, got 0; the loader's is per rank");
  }
  state_->phase = State::Phase::running;
  state_->cut.batch = static_cast<std::int64_t>(batch_size);
  const BatchShare share = batch_share(state_->samples - state_->position.samples, state_->cut);
  if (share.taken == 0) {
    return std::nullopt;
  }
  std::vector<std::size_t> chosen = state_->indices(share.mine);
  state_->position.samples += share.taken;
  return chosen.empty() ? std::nullopt : std::optional(std::move(chosen));
}

void Sampler::save(torch::serialize::OutputArchive& archive) const {
  const SamplePosition at = position();
  const auto write = [&archive](const char* key, std::int64_t value) {
    archive.write(key, torch::tensor(value, torch::kInt64), /*is_buffer=*/true);
  };
  write("epoch", at.epoch);
  write("samples", at.samples);
  write("data_set", state_->samples);
  write("seed", static_cast<std::int64_t>(state_->options.seed));
  write("shuffle", state_->options.shuffle ? 1 : 0);
}

void Sampler::load(torch::serialize::InputArchive& archive) {
  const auto read = [&archive](const char* key) {
    torch::Tensor value;
    archive.read(key, value, /*is_buffer=*/true);
    return value.item<std::int64_t>();
  };
  const auto expect = [&read](const char* key, std::int64_t expected) {
    const std::int64_t got = read(key);
    if (got != expected) {
      throw UsageError(std::string("Sampler::load: the saved ") + key + " is " +
                       std::to_string(got) + ", this one's is " + std::to_string(expected) +
                       "; its order of samples differs: make the Sampler as it was when saved");
    }
  };
  expect("data_set", state_->samples);
  expect("seed", static_cast<std::int64_t>(state_->options.seed));
  expect("shuffle", state_->options.shuffle ? 1 : 0);
  restore({read("epoch"), read("samples")});
}

}  // namespace lockstep
