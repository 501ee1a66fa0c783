#include "parallel/engine.h"

#include "base/range.h"
#include "parallel/leaf_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::parallel {
namespace {

void refuse_unbuilt(Stage stage, const Group& group) {
  if (stage != Stage::single && stage != Stage::ddp) {
    throw UsageError("stage " + std::string(name_of(stage)) +
                     " is not built yet; use Stage::single or Stage::ddp");
  }
  if (stage == Stage::single && group.size() > 1) {
    throw UsageError("stage single trains on one rank, but the group has " +
                     std::to_string(group.size()) + "; use Stage::ddp");
  }
}

// splitmix64 (Steele, Lea, Flood 2014), folded to the 32 bits that LibTorch's generator uses.
std::uint64_t leaf_seed(std::uint64_t seed, std::int64_t step, std::int64_t leaf) {
  const auto mix = [](std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  const std::uint64_t mixed =
      mix(mix(mix(seed) ^ static_cast<std::uint64_t>(step)) ^ static_cast<std::uint64_t>(leaf));
  return mixed >> 32;
}

double tree_sum(std::span<const double> values) {
  if (values.size() == 1) {
    return values[0];
  }
  const auto split = static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(values.size())));
  return tree_sum(values.first(split)) + tree_sum(values.subspan(split));
}

}  // namespace

Engine::Engine(std::shared_ptr<torch::nn::Module> module, Group& group, ParallelOptions options,
               std::unique_ptr<Device> device)
    : group_(group),
      options_(std::move(options)),
      device_(std::move(device)),
      model_((refuse_unbuilt(options_.stage, group), std::move(module)), group, options_,
             *device_) {
  if (options_.reproducible && !is_power_of_two(group.size())) {
    throw UsageError("reproducible needs a power of two ranks, got " +
                     std::to_string(group.size()));
  }
  exchange_ = options_.stage == Stage::single ? make_single_exchange(*device_)
                                              : make_ddp_exchange(*device_, group_, exposed_);
  const LeafOrder order = options_.reproducible ? LeafOrder::tree : LeafOrder::running;
  collector_ = std::make_unique<GradientCollector>(
      *device_, *exchange_, model_.parts(), model_.buckets(),
      CollectorOptions{.overlap = options_.overlap, .order = order});
  hold_gradients(GradientWidth::leaf);
  hooks_ = std::make_unique<GradientHooks>(
      model_.tensors(), [this](std::size_t parameter) { on_gradient(parameter); });
}

Engine::~Engine() = default;

// --- the loop around a step ---------------------------------------------------------------------

MicroStep Engine::begin_micro_steps(std::int64_t k, std::int64_t total_weight) {
  check_micro_steps(k);
  if (phase_ == Phase::collecting) {
    abandon();
  }
  clear_grads();
  begin_step(k > 1 ? GradientWidth::accumulating : GradientWidth::leaf);
  loop_ = Loop::micro_steps;
  scale_ = 1.0 / static_cast<double>(total_weight);
  const MicroStep first{.index = 0, .leaf = group_.rank() * k, .last = k == 1};
  torch::manual_seed(leaf_seed(options_.seed, step_, first.leaf));
  begin_leaf(0, first.last);
  return first;
}

MicroStep Engine::next_micro_step(MicroStep previous, std::int64_t k) {
  collector_->end_leaf();
  ++leaves_;
  if (previous.last) {
    loop_ = Loop::plain;
    exchange();
    return {.index = k, .leaf = previous.leaf + 1, .last = true};
  }
  const MicroStep next{
      .index = previous.index + 1, .leaf = previous.leaf + 1, .last = previous.index + 2 == k};
  torch::manual_seed(leaf_seed(options_.seed, step_, next.leaf));
  begin_leaf(next.index, next.last);
  return next;
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
  if (phase_ == Phase::exchanged) {
    phase_ = Phase::idle;
  }
  loop_ = Loop::no_sync;
}

void Engine::leave_no_sync() noexcept { loop_ = Loop::plain; }

void Engine::synchronise() {
  if (phase_ != Phase::collecting) {
    return;
  }
  loop_ = Loop::plain;
  exchange();
}

void Engine::require_decision() {
  if (phase_ == Phase::idle) {
    begin_step(gradients_->width());
    scale_ = 1.0 / group_.size();
  }
  synchronise();
}

void Engine::discard() {
  if (phase_ == Phase::collecting) {
    abandon();
  }
  clear_grads();
  phase_ = Phase::idle;
}

// --- gradients ----------------------------------------------------------------------------------

void Engine::on_gradient(std::size_t parameter) {
  if (loop_ != Loop::micro_steps) {
    enter_backward();
  }
  collector_->on_gradient(parameter);
}

// Outside micro_steps a backward is a leaf, and its end is known from LibTorch only.
void Engine::enter_backward() {
  const int backward = running_backward();
  if (backward == backward_) {
    return;
  }
  if (backward_ >= 0) {
    abandon();  // an exception ended that one, so its callback was dropped
  }
  const bool accumulates = loop_ == Loop::no_sync;
  if (phase_ != Phase::collecting) {
    begin_step(accumulates ? GradientWidth::accumulating : gradients_->width());
    scale_ = 1.0 / group_.size();
  }
  begin_leaf(leaves_, !accumulates);
  backward_ = backward;
  call_after_backward([this] { end_backward(); });
}

void Engine::end_backward() {
  const torch::NoGradGuard no_grad;
  backward_ = -1;
  collector_->end_leaf();
  ++leaves_;
  if (loop_ == Loop::plain) {
    exchange();
  }
}

void Engine::begin_step(GradientWidth width) {
  model_.check_attached();
  hold_gradients(width);
  collector_->begin_step(*gradients_, *sum_);
  exchange_->squares() = {};
  clip_factor_ = 1.0f;
  leaves_ = 0;
  record_ = {};
  exposed_.take_ms();
  phase_ = Phase::collecting;
}

void Engine::begin_leaf(std::int64_t leaf, bool exchanges) {
  collector_->begin_leaf(leaf, exchanges ? std::optional(scale_) : std::nullopt);
}

// Grows once, when accumulation needs fp32; going back would only move the same memory about.
void Engine::hold_gradients(GradientWidth width) {
  if (gradients_ && (width == GradientWidth::leaf || gradients_->width() == width)) {
    return;
  }
  sum_.reset();
  gradients_.reset();
  gradients_ = std::make_unique<GradientMemory>(group_, model_.parts(), width);
  const LeafOrder order = options_.reproducible ? LeafOrder::tree : LeafOrder::running;
  sum_ = std::make_unique<LeafSum>(*device_, model_.parts(), *gradients_, order);
}

void Engine::exchange() {
  const torch::NoGradGuard no_grad;
  collector_->finish(scale_);
  record_.collectives = collector_->started();
  record_.first_bucket_before_last_hook = collector_->overlapped();
  decide_and_publish();
  phase_ = Phase::exchanged;
}

void Engine::decide_and_publish() {
  device_->host_follows_compute();
  {
    const auto running = exposed_.run();
    decision_ = decide(group_, exchange_->squares(), arrived());
  }
  record_.exposed_ms += exposed_.take_ms();
  for (std::size_t i = 0; i < parameters(); ++i) {
    const auto [part, member] = place(i);
    model_.tensors()[i].mutable_grad() =
        decision_.present[i] ? gradients_->view(part, member) : at::Tensor();
  }
  versions_.clear();
  for (std::size_t part = 0; part < parts().size(); ++part) {
    versions_.push_back(gradients_->version(part));
  }
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
  backward_ = -1;
  loop_ = Loop::plain;
  phase_ = Phase::idle;
}

void Engine::clear_grads() {
  for (const at::Tensor& tensor : model_.tensors()) {
    tensor.mutable_grad().reset();
  }
}

// --- norm, clipping, update ---------------------------------------------------------------------

double Engine::grad_norm() {
  require_decision();
  if (gradients_were_touched()) {
    recount_squares();
  }
  return decision_.norm;
}

double Engine::clip_grad_norm(double max_norm) {
  if (!(max_norm > 0)) {
    throw UsageError("clip_grad_norm: expected a norm > 0, got " + std::to_string(max_norm));
  }
  const double norm = grad_norm();
  if (!decision_.all_finite) {
    return norm;
  }
  // torch.nn.utils.clip_grad_norm_'s guard against a zero norm.
  const auto factor = static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6)));
  if (optimizer_bytes_) {
    clip_factor_ = factor;
  } else if (factor < 1.0f) {
    for (std::size_t part = 0; part < parts().size(); ++part) {
      const SymmetricSpan& span = gradients_->span(part);
      device_->scale({span.data(), span.dtype}, factor, std::nullopt, span.count);
    }
  }
  return norm;
}

bool Engine::gradients_were_touched() const {
  for (std::size_t part = 0; part < parts().size(); ++part) {
    if (gradients_->version(part) != versions_[part]) {
      return true;
    }
  }
  return false;
}

void Engine::recount_squares() {
  exchange_->squares() = {};
  for (std::size_t part = 0; part < parts().size(); ++part) {
    const SymmetricSpan& span = gradients_->span(part);
    const Range range = exchange_->counts_squares_of(span.count);
    const auto* bytes = static_cast<const std::byte*>(span.data());
    device_->add_squares(exchange_->squares(),
                         {bytes + range.begin * size_of(span.dtype), span.dtype}, range.size());
  }
  decide_and_publish();
}

bool Engine::may_step() { return decision_.all_finite; }

std::vector<Engine::Update> Engine::updates() {
  std::vector<Update> updates;
  for (std::size_t i = 0; i < parameters(); ++i) {
    const auto [part, member] = place(i);
    const NamedParameter& parameter = parts()[part]->member(member);
    if (!parameter.tensor.grad().defined() || parameter.tensor.numel() == 0) {
      continue;
    }
    adopt_replaced_gradient(i);
    const optim::Vector gradient = gradients_->values(part, member);
    updates.push_back({.parameter = i,
                       .count = parameter.tensor.numel(),
                       .values = parts()[part]->values(member),
                       .master = parts()[part]->master(member),
                       .gradient = {gradient.data, gradient.dtype}});
  }
  return updates;
}

// A program may assign .grad a tensor of its own; the update reads flat memory.
void Engine::adopt_replaced_gradient(std::size_t i) {
  const auto [part, member] = place(i);
  const at::Tensor& gradient = model_.tensors()[i].grad();
  if (gradient.const_data_ptr() != gradients_->view(part, member).const_data_ptr()) {
    gradients_->view(part, member).copy_(gradient);
  }
}

void Engine::stepped() {
  for (const at::Tensor& tensor : model_.tensors()) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
  clear_grads();
  clip_factor_ = 1.0f;
  phase_ = Phase::idle;
  ++step_;
}

void Engine::skipped() {
  record_.skipped = true;
  clear_grads();
  phase_ = Phase::idle;
  ++step_;
}

double Engine::mean_loss(std::span<const double> losses, std::int64_t total_weight) {
  std::vector<double> mine(losses.begin(), losses.end());
  std::vector<double> all(mine.size() * static_cast<std::size_t>(group_.size()));
  group_.all_gather(std::span(mine), std::span(all), {.name = "losses"}).wait();
  return all.empty() ? 0.0 : tree_sum(all) / static_cast<double>(total_weight);
}

std::int64_t Engine::total_weight(std::span<const std::int64_t> weights) {
  return parallel::total_weight(group_, weights);
}

// --- what it holds ------------------------------------------------------------------------------

const NamedParameter& Engine::parameter(std::size_t i) const {
  const auto [part, member] = place(i);
  return parts()[part]->member(member);
}

std::size_t Engine::index_of(const std::string& name) const {
  for (std::size_t i = 0; i < parameters(); ++i) {
    if (parameter(i).name == name) {
      return i;
    }
  }
  throw UsageError("no trained parameter named '" + name + "' in the module");
}

void Engine::register_optimizer(std::int64_t state_bytes) {
  if (optimizer_bytes_) {
    throw UsageError(
        "this Parallel has an optimizer already; each parameter belongs to exactly one");
  }
  optimizer_bytes_ = state_bytes;
}

torch::Tensor Engine::full_parameter(const std::string& name) const {
  device_->host_follows_compute();
  return model_.full_precision(name);
}

void Engine::observe(StepObserver* observer) {
  exposed_.observe(observer);
  exchange_->observe(observer);
}

void Engine::set_parameter(const std::string& name, const torch::Tensor& values) {
  const torch::NoGradGuard no_grad;
  device_->host_follows_compute();
  model_.set_full_precision(name, values, *device_);
}

void Engine::resume_at(std::int64_t steps) {
  discard();
  step_ = steps;
}

HeldBytes Engine::held() const {
  HeldBytes held;
  held.parameters = model_.parameter_bytes();
  held.gradients = gradients_->bytes() + sum_->bytes();
  held.optimizer = model_.master_bytes() + optimizer_bytes_.value_or(0);
  return held;
}

}  // namespace lockstep::parallel
