// What an Engine tells of itself between steps: parameters, gradients, losses, bytes.
#include "base/range.h"
#include "parallel/engine.h"
#include "parallel/leaf_weights.h"

namespace lockstep::parallel {
namespace {

// What the ranks gave, each its k leaves, in the order of leaves that are one run per micro-batch.
std::vector<double> leaf_by_leaf(const std::vector<double>& by_rank, std::int64_t k) {
  std::vector<double> result;
  const auto count = static_cast<std::int64_t>(by_rank.size());
  for (std::int64_t index = 0; index < k; ++index) {
    for (std::int64_t at = index; at < count; at += k) {
      result.push_back(by_rank[static_cast<std::size_t>(at)]);
    }
  }
  return result;
}

double tree_sum(std::span<const double> values) {
  if (values.size() == 1) {
    return values[0];
  }
  const auto split = static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(values.size())));
  return tree_sum(values.first(split)) + tree_sum(values.subspan(split));
}

}  // namespace

const NamedParameter& Engine::parameter(std::size_t i) const {
  const auto [part, member] = place(i);
  return parts()[part]->member(member);
}

std::optional<std::size_t> Engine::number_of(const std::string& name) const {
  return model_.number_of(name);
}

void Engine::register_optimizer(Clipping clipping) {
  if (clipping_) {
    throw UsageError(
        "this Parallel has an optimizer already; each parameter belongs to exactly one");
  }
  for (const FlatParameter* part : model_.parts()) {
    part->check_updatable();
  }
  clipping_ = clipping;
}

std::size_t Engine::with_gradient(const std::string& name) const {
  if (phase_ != Phase::exchanged) {
    throw UsageError("the gradient of '" + name +
                     "' was asked for outside of a step: ask between the exchange and the "
                     "optimizer's step");
  }
  const auto number = number_of(name);
  if (!number) {
    throw UsageError("no trained parameter named '" + name + "' in the module");
  }
  device_->host_follows_compute();
  return *number;
}

LocalGradient Engine::local_grad(const std::string& name) const {
  const std::size_t i = with_gradient(name);
  const auto [part, member] = place(i);
  const Range kept = parts()[part]->kept(member);
  const bool present = gradient_->decision().present.at(i);
  return {kept.begin, kept.end, present ? gradient_->kept(i) : at::Tensor()};
}

torch::Tensor Engine::full_grad(const std::string& name) const {
  const std::size_t i = with_gradient(name);
  if (!gradient_->decision().present.at(i)) {
    return {};
  }
  const auto [part, member] = place(i);
  const at::Tensor all = parts()[part]->gather(member, gradient_->kept(i), group_);
  return all.view(parameter(i).tensor.sizes());
}

torch::Tensor Engine::full_parameter(const std::string& name) const {
  device_->host_follows_compute();
  return model_.full_precision(name, group_);
}

void Engine::visit_full_parameter(const std::string& name,
                                  const std::function<void(const torch::Tensor&)>& visit) const {
  device_->host_follows_compute();
  model_.visit_full_precision(name, group_, visit);
}

LocalParameter Engine::local_parameter(const std::string& name) const {
  device_->host_follows_compute();
  const auto number = number_of(name);
  if (!number || !updates_shards()) {
    const at::Tensor all = model_.full_precision(name, group_).contiguous().view({-1});
    return {.end = all.numel(), .values = all};
  }
  const auto [part, member] = place(*number);
  const Range kept = parts()[part]->kept(member);
  return {kept.begin, kept.end, /*everywhere=*/false, parts()[part]->kept_full_precision(member)};
}

double Engine::mean_loss(std::span<const double> losses, std::int64_t total_weight) {
  std::vector<double> mine(losses.begin(), losses.end());
  std::vector<double> all(mine.size() * static_cast<std::size_t>(group_.size()));
  group_.all_gather(std::span(mine), std::span(all), {.name = "losses"}).wait();
  const auto k = static_cast<std::int64_t>(mine.size());
  if (across_first(k)) {
    all = leaf_by_leaf(all, k);
  }
  return all.empty() ? 0.0 : tree_sum(all) / static_cast<double>(total_weight);
}

std::int64_t Engine::total_weight(std::span<const std::int64_t> weights) {
  return parallel::total_weight(group_, weights);
}

void Engine::observe(StepObserver* observer) {
  exposed_.observe(observer);
  exchange_->observe(observer);
}

void Engine::set_parameter(const std::string& name, const torch::Tensor& values) {
  const torch::NoGradGuard no_grad;
  device_->host_follows_compute();
  model_.set_full_precision(name, values, *device_);
  if (shares_parameters()) {
    group_.barrier({.name = "set " + name});
  }
}

void Engine::with_full_parameters(const std::function<void()>& body, FullParameters access) {
  if (phase_ != Phase::idle) {
    throw UsageError(
        "with_full_parameters() in the middle of a step; call it after the optimizer's step (or "
        "zero_grad())");
  }
  device_->host_follows_compute();
  model_.with_full_precision(body, access, group_, *device_);
  if (access == FullParameters::write && shares_parameters()) {
    group_.barrier({.name = "with_full_parameters"});
  }
}

void Engine::resume_at(std::int64_t steps) {
  discard();
  step_ = steps;
}

HeldBytes Engine::held() const {
  HeldBytes held;
  held.parameters = model_.parameter_bytes();
  held.gradients = gradient_->bytes();
  held.transient = gradient_->transient_bytes();
  held.optimizer = model_.master_bytes() + optimizer_bytes_;
  return held;
}

}  // namespace lockstep::parallel
