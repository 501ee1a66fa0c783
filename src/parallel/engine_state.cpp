// What an Engine tells of itself between steps: parameters, gradients, bytes.
#include "parallel/engine.h"

namespace lockstep::parallel {

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
