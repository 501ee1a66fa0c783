// The optimizers that Parallel makes. adamw() and sgd() are Lockstep's own: one pass over flat
// memory. optimizer<torch::optim::RMSprop>(…) runs one of LibTorch's on the same parameters.
//
// What holds for all of them:
//   - step() completes an unfinished exchange first. When any rank's gradient is not finite no rank
//     steps and nothing changes, step counts included. Parameters without a gradient on every rank
//     stay untouched, decay included; so do frozen ones, whose state waits for them.
//   - With a closure step() calls it once and returns its loss.
//   - Learning-rate schedulers of torch::optim work on them.
//   - They must not outlive their Parallel, which has one optimizer: each parameter belongs to
//     exactly one.
#pragma once

#include "lockstep/optimizer_state.h"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace parallel {
class Engine;
class FlatState;
struct Update;
}  // namespace parallel

using ParameterPredicate =
    std::function<bool(const std::string& name, const torch::Tensor& parameter)>;

// Parameters with options of their own; the first group whose predicate holds takes a parameter.
template <class Options>
struct ParameterGroup {
  ParameterPredicate holds;
  Options options;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  // Which parameters decay; all when not given. The others form a parameter group of their own.
  ParameterPredicate decays = {};
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;  // added to the gradient, as torch::optim::SGD does
  bool nesterov = false;      // needs momentum > 0 and dampening 0
  ParameterPredicate decays = {};
};

// What Lockstep's own optimizers share. Clipping, update and the rounding into bf16 parameters
// happen in one pass over flat memory; state lives there too, not in state().
//
// param_groups() holds LibTorch's options: first the parameters in no given group (those that
// decay, then the others), then the given groups in order, split alike. Empty groups after the
// first are left out.
class FlatOptimizer : public torch::optim::Optimizer {
 public:
  ~FlatOptimizer() override;
  torch::Tensor step(LossClosure closure = nullptr) override;
  // Harmless before a step; between micro-batches it discards what was accumulated.
  void zero_grad(bool set_to_none = true);
  // Sets the rate of every group.
  void set_lr(double lr);
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
  // What checkpoint.h saves: exp_avg and exp_avg_sq, or momentum_buffer, and each parameter's count
  // of updates.
  OptimizerState& flat_state();

 protected:
  // `kind` and `slots` as OptimizerState has them.
  FlatOptimizer(parallel::Engine& engine, std::vector<torch::optim::OptimizerParamGroup> groups,
                std::unique_ptr<torch::optim::OptimizerOptions> defaults, std::string kind,
                std::vector<std::string> slots);
  parallel::FlatState& kept() { return *state_; }
  parallel::Engine& engine() { return engine_; }

 private:
  void update_all();
  // Updates one parameter.
  virtual void update(const parallel::Update& update,
                      const torch::optim::OptimizerOptions& options) = 0;

  parallel::Engine& engine_;
  std::unique_ptr<parallel::FlatState> state_;
};

// AdamW (Loshchilov & Hutter 2019) as torch::optim::AdamW computes it. param_groups() holds
// torch::optim::AdamWOptions; amsgrad is refused.
class AdamW final : public FlatOptimizer {
 public:
  AdamW(parallel::Engine& engine, const AdamWOptions& options,
        const std::vector<ParameterGroup<AdamWOptions>>& groups = {});

 private:
  void update(const parallel::Update& update,
              const torch::optim::OptimizerOptions& options) override;
};

// Stochastic gradient descent as torch::optim::SGD computes it; the momentum (Sutskever et al.
// 2013, the form without a factor on the first gradient) costs 4 bytes per parameter, and nothing
// when no group has any. param_groups() holds torch::optim::SGDOptions.
class SGD final : public FlatOptimizer {
 public:
  SGD(parallel::Engine& engine, const SGDOptions& options,
      const std::vector<ParameterGroup<SGDOptions>>& groups = {});

 private:
  void update(const parallel::Update& update,
              const torch::optim::OptimizerOptions& options) override;
};

namespace parallel {
// What TorchOptimizer needs of the engine: the trained parameters' values in full precision (the
// masters of bf16 ones); and a step around `update`, which sees the mean gradients in their .grad.
std::vector<torch::Tensor> full_precision_parameters(Engine& engine);
torch::Tensor step_around(Engine& engine, const std::vector<torch::Tensor>& parameters,
                          const torch::optim::Optimizer::LossClosure& closure,
                          const std::function<void()>& update);
void discard_gradients(Engine& engine);
}  // namespace parallel

// One of LibTorch's optimizers over the engine's parameters. It must update each element from that
// element's own gradient and state: then every rank, given the same mean gradients, takes the same
// step. bf16 parameters are updated in their fp32 masters and rounded once. clip_grad_norm() scales
// .grad in place; the optimizer's own state is not in held(). Parameters unfrozen later are an
// error: make the optimizer after that.
template <class Optimizer>
class TorchOptimizer final : public Optimizer {
  static_assert(std::is_base_of_v<torch::optim::Optimizer, Optimizer>,
                "TorchOptimizer wraps a torch::optim::Optimizer");
  static_assert(!std::is_base_of_v<torch::optim::LBFGS, Optimizer>,
                "torch::optim::LBFGS is refused: its step evaluates the loss several times and "
                "takes inner products over all parameters, so neither one exchange per step nor an "
                "update by element fits it; use adamw(), sgd() or an elementwise optimizer");

 public:
  template <class Options>
  TorchOptimizer(parallel::Engine& engine, const Options& options)
      : Optimizer(parallel::full_precision_parameters(engine), options), engine_(engine) {}

  torch::Tensor step(typename Optimizer::LossClosure closure = nullptr) override {
    return parallel::step_around(engine_, this->param_groups().at(0).params(), closure,
                                 [this] { Optimizer::step(); });
  }
  void zero_grad(bool = true) { parallel::discard_gradients(engine_); }

 private:
  parallel::Engine& engine_;
};

}  // namespace lockstep
