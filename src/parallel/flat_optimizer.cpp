#include "lockstep/optim.h"
#include "parallel/engine.h"
#include "parallel/flat_state.h"

#include <map>
#include <utility>

namespace lockstep {
namespace {

std::string key(std::size_t parameter, const std::string& what) {
  return "parameter_" + std::to_string(parameter) + "_" + what;
}

}  // namespace

FlatOptimizer::FlatOptimizer(parallel::Engine& engine,
                             std::vector<torch::optim::OptimizerParamGroup> groups,
                             std::unique_ptr<torch::optim::OptimizerOptions> defaults,
                             std::string kind, std::vector<std::string> slots)
    : Optimizer(std::vector<torch::optim::OptimizerParamGroup>{}, std::move(defaults)),
      engine_(engine),
      state_(std::make_unique<parallel::FlatState>(engine, std::move(kind), std::move(slots))) {
  // Not through add_param_group(): LibTorch would replace each option of a group that equals the
  // option's default by the optimizer's own, a weight decay of 0 among them.
  param_groups_ = std::move(groups);
}

FlatOptimizer::~FlatOptimizer() = default;

torch::Tensor FlatOptimizer::step(LossClosure closure) {
  return engine_.step(closure, [this] { update_all(); });
}

void FlatOptimizer::update_all() {
  state_->follow();
  std::map<const c10::TensorImpl*, const torch::optim::OptimizerOptions*> options;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& tensor : group.params()) {
      options[tensor.unsafeGetTensorImpl()] = &group.options();
    }
  }
  for (const parallel::Update& one : engine_.gradient().updates()) {
    engine_.updated(engine_.place(one.parameter).part);
    ++state_->steps(one.parameter);
    if (one.count > 0) {
      const at::Tensor& tensor = engine_.parameter(one.parameter).tensor;
      update(one, *options.at(tensor.unsafeGetTensorImpl()));
    }
  }
}

void FlatOptimizer::zero_grad(bool) { engine_.discard(); }

void FlatOptimizer::set_lr(double lr) {
  for (torch::optim::OptimizerParamGroup& group : param_groups()) {
    group.options().set_lr(lr);
  }
}

OptimizerState& FlatOptimizer::flat_state() {
  state_->follow();
  return *state_;
}

void FlatOptimizer::save(torch::serialize::OutputArchive& archive) const {
  archive.write("parameters", c10::IValue(static_cast<std::int64_t>(engine_.parameters())));
  for (std::size_t i = 0; i < engine_.parameters(); ++i) {
    archive.write(key(i, "name"), c10::IValue(engine_.parameter(i).name));
    archive.write(key(i, "step"), torch::tensor(state_->steps(i)));
    for (const std::string& slot : state_->slots()) {
      archive.write(key(i, slot), state_->elements(slot, engine_.parameter(i).name).clone());
    }
  }
}

// By name, since the order hangs on what was frozen when.
void FlatOptimizer::load(torch::serialize::InputArchive& archive) {
  const torch::NoGradGuard no_grad;
  state_->follow();
  c10::IValue count;
  archive.read("parameters", count);
  if (count.toInt() != static_cast<std::int64_t>(engine_.parameters())) {
    throw UsageError("the saved optimizer state is of " + std::to_string(count.toInt()) +
                     " parameters, this model trains " + std::to_string(engine_.parameters()) +
                     "; load it into the model it was saved from");
  }
  for (std::size_t i = 0; i < engine_.parameters(); ++i) {
    c10::IValue name;
    archive.read(key(i, "name"), name);
    const std::string parameter = name.toStringRef();
    torch::Tensor step;
    archive.read(key(i, "step"), step);
    state_->set_updates(parameter, step.item<std::int64_t>());
    for (const std::string& slot : state_->slots()) {
      torch::Tensor values;
      archive.read(key(i, slot), values);
      const torch::Tensor kept = state_->elements(slot, parameter);
      if (values.numel() != kept.numel()) {
        throw UsageError("the saved optimizer state has " + std::to_string(values.numel()) +
                         " elements of '" + parameter + "', this rank keeps " +
                         std::to_string(kept.numel()) +
                         ": load it on the rank, stage and number of ranks it was saved on, or use "
                         "save_checkpoint()");
      }
      kept.copy_(values);
    }
  }
}

}  // namespace lockstep
