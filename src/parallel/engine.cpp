#include "parallel/engine.h"

#include "base/range.h"
#include "parallel/leaf_seed.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::parallel {
namespace {

void refuse_unbuilt(Stage stage, const Group& group) {
  if (!is_built(stage)) {
    throw UsageError("stage " + std::string(name_of(stage)) +
                     " is not built yet; use Stage::ddp, zero1, zero2 or zero3");
  }
  if (stage == Stage::single && group.size() > 1) {
    throw UsageError("stage single trains on one rank, but the group has " +
                     std::to_string(group.size()) + "; use Stage::ddp");
  }
}

std::unique_ptr<Exchange> make_exchange(Stage stage, Device& device, Group& group,
                                        Stopwatch& exposed) {
  switch (stage) {
    case Stage::single:
      return make_single_exchange(device);
    case Stage::zero1:
      return make_zero1_exchange(device, group, exposed);
    case Stage::zero2:
    case Stage::zero3:  // differs in where the parameters lie
      return make_zero2_exchange(device, group, exposed);
    default:
      return make_ddp_exchange(device, group, exposed);
  }
}

}  // namespace

Engine::Engine(std::shared_ptr<torch::nn::Module> module, Group& group, ParallelOptions options,
               std::unique_ptr<Device> device)
    : group_(group),
      options_(std::move(options)),
      device_(std::move(device)),
      model_((refuse_unbuilt(options_.stage, group), std::move(module)), group, options_, *device_),
      buffers_(model_.module(), group, options_.buffers) {
  if (options_.reproducible && !is_power_of_two(group.size())) {
    throw UsageError("reproducible needs a power of two ranks, got " +
                     std::to_string(group.size()));
  }
  if (options_.reshard == Reshard::always && options_.stage != Stage::zero3) {
    throw UsageError("Reshard::always is for stage zero3, got " +
                     std::string(name_of(options_.stage)) + "; leave it out");
  }
  exchange_ = make_exchange(options_.stage, *device_, group_, exposed_);
  if (updates_shards()) {
    updated_values_.emplace(*device_, group_, exposed_);
  }
  make_collector();
  gradient_ = std::make_unique<MeanGradient>(
      *device_, group_, model_, *exchange_,
      shards_gradients(options_.stage) ? GradientPlace::shards : GradientPlace::full);
  const bool in_shards = across_first(1) && options_.accumulate_in == AccumulateIn::shard;
  gradient_->hold(in_shards ? GradientPlace::shards : GradientPlace::full, GradientWidth::leaf);
  std::vector<at::Tensor> listed;
  for (const NamedParameter& parameter : model_.listed()) {
    listed.push_back(parameter.tensor);
  }
  hooks_ =
      std::make_unique<GradientHooks>(std::move(listed), [this](std::size_t i) { on_gradient(i); });
  if (options_.recompute) {
    recomputing_.emplace(model_.module(), [this] { enter_recomputation(); });
  }
  make_resident();
}

void Engine::make_resident() {
  resident_.reset();
  if (options_.stage == Stage::zero3 && options_.reshard == Reshard::always) {
    resident_.emplace(model_);
  }
}

void Engine::make_collector() {
  collector_ =
      std::make_unique<GradientCollector>(*device_, *exchange_, model_.parts(), model_.buckets(),
                                          options_.overlap ? Overlap::on : Overlap::off,
                                          options_.recompute ? Firings::several : Firings::once);
}

Engine::~Engine() = default;

// --- the loop around a step ---------------------------------------------------------------------

MicroStep Engine::begin_micro_steps(std::int64_t k, std::int64_t total_weight) {
  check_micro_steps(k);
  if (phase_ == Phase::collecting) {
    abandon();
  }
  gradient_->clear_grads();
  const LeafOrder order = options_.reproducible ? LeafOrder::tree : LeafOrder::running;
  begin_step(across_first(k) ? GradientPlace::shards : GradientPlace::full,
             k > 1 ? GradientWidth::accumulating : GradientWidth::leaf, order);
  buffers_.begin_step(k, order);
  loop_ = Loop::micro_steps;
  k_ = k;
  scale_ = 1.0 / static_cast<double>(total_weight);
  const MicroStep first{.index = 0, .leaf = leaf_of(0), .last = k == 1};
  torch::manual_seed(leaf_seed(options_.seed, step_, first.leaf));
  begin_leaf(0, first.last);
  return first;
}

MicroStep Engine::next_micro_step(MicroStep previous, std::int64_t k) {
  collector_->end_leaf();
  end_units();
  buffers_.end_leaf();
  ++leaves_;
  if (previous.last) {
    loop_ = Loop::plain;
    exchange();
    return {.index = k, .leaf = leaf_of(k), .last = true};
  }
  const MicroStep next{.index = previous.index + 1,
                       .leaf = leaf_of(previous.index + 1),
                       .last = previous.index + 2 == k};
  torch::manual_seed(leaf_seed(options_.seed, step_, next.leaf));
  begin_leaf(next.index, next.last);
  return next;
}

bool Engine::across_first(std::int64_t k) const {
  return shards_gradients(options_.stage) &&
         (k == 1 || options_.accumulate_in == AccumulateIn::shard);
}

// Local first a rank's leaves are a run; across first each micro-batch's leaves are one.
std::int64_t Engine::leaf_of(std::int64_t index) const {
  return across_first(k_) ? index * group_.size() + group_.rank() : group_.rank() * k_ + index;
}

void Engine::check_micro_steps(std::int64_t k) const {
  if (k < 1) {
    throw UsageError("micro_steps(k): expected k ≥ 1, got " + std::to_string(k));
  }
  if (options_.reproducible && !is_power_of_two(k)) {
    throw UsageError("reproducible needs a power of two micro-batches a step, got " +
                     std::to_string(k));
  }
  if (loop_ == Loop::no_sync) {
    throw UsageError("micro_steps inside no_sync(): end the no_sync scope first");
  }
}

void Engine::enter_no_sync() {
  if (loop_ != Loop::plain) {
    throw UsageError("no_sync() inside micro_steps or another no_sync(): they don't nest");
  }
  loop_ = Loop::no_sync;
}

void Engine::leave_no_sync() noexcept { loop_ = Loop::plain; }

void Engine::synchronise() {
  if (phase_ != Phase::collecting) {
    return;
  }
  refuse_incomplete();
  loop_ = Loop::plain;
  exchange();
}

void Engine::refuse_incomplete() {
  const bool failed = backward_ >= 0;
  const bool left = loop_ == Loop::micro_steps && leaves_ < k_;
  const std::int64_t ended = leaves_;
  if (!failed && !left) {
    return;
  }
  abandon();
  if (failed) {
    throw UsageError(
        "the last backward ended in an exception, so its gradients were discarded; run another "
        "one (or zero_grad()) before the step");
  }
  throw UsageError("the loop over micro_steps was left after " + std::to_string(ended) + " of " +
                   std::to_string(k_) +
                   " micro-batches, so their gradients were discarded; run it to its end before "
                   "the step");
}

void Engine::require_decision() {
  if (phase_ == Phase::idle) {
    begin_step(gradient_->place(), gradient_->width(), LeafOrder::running);
    scale_ = 1.0 / group_.size();
  }
  synchronise();
}

void Engine::discard() {
  if (phase_ == Phase::collecting) {
    abandon();
  }
  gradient_->clear_grads();
  phase_ = Phase::idle;
}

// --- gradients ----------------------------------------------------------------------------------

void Engine::on_gradient(std::size_t listed) {
  if (loop_ != Loop::micro_steps) {
    enter_backward(listed);
  }
  const auto parameter = model_.trained(listed);
  if (!parameter) {
    throw UsageError("parameter '" + model_.listed()[listed].name +
                     "' was unfrozen in the middle of a step; freeze and unfreeze between steps");
  }
  collector_->on_gradient(*parameter);
}

// What a unit recomputes gives its gradients in a backward of its own, whose end ends no leaf.
void Engine::enter_recomputation() {
  if (loop_ != Loop::micro_steps) {
    enter_backward(std::nullopt);
  }
}

// Outside micro_steps a backward is a leaf, and its end is known from LibTorch only.
// `with_gradient`: the listed parameter that this one has given a gradient by now, if any.
void Engine::enter_backward(std::optional<std::size_t> with_gradient) {
  const int backward = running_backward();
  if (backward == backward_) {
    return;
  }
  if (backward_ >= 0) {
    if (!awaited_.expired()) {
      return;  // this one runs inside it
    }
    abandon();  // an exception ended it, so its callback was dropped
  }
  const bool accumulates = loop_ == Loop::no_sync;
  if (phase_ != Phase::collecting) {
    const bool carries = phase_ == Phase::exchanged;
    begin_loop_step(accumulates);
    scale_ = 1.0 / group_.size();
    if (carries) {
      refuse_carrying();
      carry_gradients(with_gradient);
    }
  }
  begin_leaf(leaves_, !accumulates);
  backward_ = backward;
  const auto token = std::make_shared<int>(backward);
  awaited_ = token;
  call_after_backward([this, token] { end_backward(); });
}

// Of a hand-written loop: how many backwards there will be is not known.
void Engine::begin_loop_step(bool accumulates) {
  if (!accumulates && across_first(1)) {
    begin_step(GradientPlace::shards, GradientWidth::leaf, LeafOrder::running);
  } else {
    const bool wide = accumulates || gradient_->width() == GradientWidth::accumulating;
    begin_step(GradientPlace::full, wide ? GradientWidth::accumulating : GradientWidth::leaf,
               LeafOrder::running);
  }
}

// The mean is complete in this rank's shards only, so there is nothing that a sum could go on from.
void Engine::refuse_carrying() {
  if (sharded()) {
    abandon();
    throw UsageError("stage " + std::string(name_of(options_.stage)) +
                     ": a second backward before the step, after its gradients were exchanged; "
                     "put all backwards of a step but the last under no_sync(), use micro_steps(), "
                     "or call zero_grad() between");
  }
}

// LibTorch adds to a .grad that nobody cleared; `but_not` is the one it has added to by now.
void Engine::carry_gradients(std::optional<std::size_t> but_not) {
  for (std::size_t i = 0; i < model_.listed().size(); ++i) {
    const auto parameter = model_.trained(i);
    if (i != but_not && parameter && model_.listed()[i].tensor.grad().defined()) {
      collector_->carry(*parameter);
    }
  }
}

void Engine::end_backward() {
  const torch::NoGradGuard no_grad;
  backward_ = -1;
  collector_->end_leaf();
  end_units();
  ++leaves_;
  if (loop_ == Loop::plain) {
    exchange();
  }
}

void Engine::begin_step(GradientPlace place, GradientWidth width, LeafOrder order) {
  model_.check_unchanged();
  follow_unfreezing();
  gradient_->hold(place, width);
  gradient_->begin_step(*collector_, order);
  exchange_->squares() = {};
  clip_factor_ = 1.0f;
  leaves_ = 0;
  record_ = {};
  exposed_.take_ms();
  phase_ = Phase::collecting;
}

void Engine::follow_unfreezing() {
  const std::vector<std::size_t> unfrozen = model_.unfrozen();
  if (unfrozen.empty()) {
    return;
  }
  for (const std::size_t i : unfrozen) {
    hooks_->take(i);
  }
  model_.add(unfrozen, group_, options_, *device_);
  make_collector();
  follow_units_ = true;  // a backward may be running
}

// A leaf's backward has ended. What an abandoned one leaves gathered the next forward frees.
void Engine::end_units() {
  if (resident_) {
    resident_->end_backward();
    resident_->order().end_leaf();
  }
  if (std::exchange(follow_units_, false)) {
    make_resident();
  }
}

void Engine::begin_leaf(std::int64_t leaf, bool exchanges) {
  collector_->begin_leaf(leaf, exchanges ? std::optional(scale_) : std::nullopt);
}

void Engine::exchange() {
  const torch::NoGradGuard no_grad;
  collector_->finish(scale_);
  record_.collectives = collector_->started();
  record_.first_bucket_before_last_hook = collector_->overlapped();
  device_->host_follows_compute();
  {
    const auto running = exposed_.run();
    gradient_->publish(arrived(),
                       resident_ ? std::optional(resident_->order().digest()) : std::nullopt);
    buffers_.exchange();
  }
  agree_on_order();
  record_.exposed_ms += exposed_.take_ms();
  phase_ = Phase::exchanged;
}

// Ranks that do not are told apart before anything is updated.
void Engine::agree_on_order() {
  if (!resident_) {
    return;
  }
  if (!gradient_->decision().orders_agree) {
    try {
      resident_->order().verify(group_);
    } catch (...) {
      discard();
      throw;
    }
  }
  resident_->order().end_step();
}

std::vector<bool> Engine::arrived() const {
  std::vector<bool> arrived;
  for (std::size_t i = 0; i < parameters(); ++i) {
    arrived.push_back(collector_->arrived(i));
  }
  return arrived;
}

void Engine::abandon() {
  collector_->abandon();
  buffers_.abandon();
  if (resident_) {
    resident_->order().forget();
  }
  backward_ = -1;
  if (loop_ == Loop::micro_steps) {
    loop_ = Loop::plain;  // a no_sync scope ends itself
  }
  phase_ = Phase::idle;
}

// --- norm, clipping, update ---------------------------------------------------------------------

double Engine::grad_norm() {
  require_decision();
  return gradient_->norm();
}

double Engine::clip_grad_norm(double max_norm) {
  if (!(max_norm > 0)) {
    throw UsageError("clip_grad_norm: expected a norm > 0, got " + std::to_string(max_norm));
  }
  const double norm = grad_norm();
  if (!may_step()) {
    return norm;
  }
  // torch.nn.utils.clip_grad_norm_'s guard against a zero norm.
  const auto factor = static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6)));
  if (clipping_ == Clipping::fused) {
    clip_factor_ = factor;
  } else if (factor < 1.0f) {
    gradient_->scale(factor);
  }
  return norm;
}

torch::Tensor Engine::step(const torch::optim::Optimizer::LossClosure& closure,
                           const std::function<void()>& update) {
  torch::Tensor loss;
  if (closure) {
    const torch::AutoGradMode with_grad(true);
    loss = closure();
  }
  const torch::NoGradGuard no_grad;
  require_decision();
  if (may_step()) {
    update();
    end_update();
    stepped();
  } else {
    skipped();
  }
  return loss;
}

void Engine::updated(std::size_t parts) {
  if (updated_values_) {
    updated_values_->start(model_.parts(), parts);
  }
}

void Engine::end_update() {
  updated(model_.parts().size());
  if (updated_values_) {
    updated_values_->finish();
  }
  record_.exposed_ms += exposed_.take_ms();
}

bool Engine::may_step() const { return gradient_->decision().all_finite; }

void Engine::stepped() {
  for (const at::Tensor& tensor : model_.tensors()) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
  gradient_->clear_grads();
  clip_factor_ = 1.0f;
  phase_ = Phase::idle;
  ++step_;
}

void Engine::skipped() {
  record_.skipped = true;
  gradient_->clear_grads();
  phase_ = Phase::idle;
  ++step_;
}

}  // namespace lockstep::parallel
