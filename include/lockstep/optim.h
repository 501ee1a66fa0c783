// The optimizers that Parallel makes: torch::optim::Optimizer over flat memory.
#pragma once

#include "lockstep/optimizer_state.h"

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>

namespace lockstep {

namespace parallel {
class AdamWState;
class Engine;
}  // namespace parallel

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  // Which parameters decay; all when not given. The others form a second parameter group.
  std::function<bool(const std::string& name, const torch::Tensor& parameter)> decays = {};
};

// AdamW (Loshchilov & Hutter 2019) as torch::optim::AdamW computes it; clipping, update and the
// rounding into bf16 parameters happen in one pass over flat memory. Parameters without a gradient
// on every rank stay untouched, decay included. When any rank's gradient is not finite no rank
// steps and nothing changes, the step count included.
//
// param_groups() holds torch::optim::AdamWOptions, so learning-rate schedulers work; group 0
// decays, group 1 (when there is one) does not. State lives in flat memory, not in state(). Must
// not outlive its Parallel.
class AdamW : public torch::optim::Optimizer {
 public:
  AdamW(parallel::Engine& engine, const AdamWOptions& options);
  ~AdamW() override;
  // Completes an unfinished exchange first. With a closure: calls it and returns its loss.
  torch::Tensor step(LossClosure closure = nullptr) override;
  // Harmless before a step; between micro-batches it discards what was accumulated.
  void zero_grad(bool set_to_none = true);
  // Sets the rate of every group.
  void set_lr(double lr);
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
  // What checkpoint.h saves: exp_avg, exp_avg_sq, and each parameter's count of updates.
  OptimizerState& flat_state();

 private:
  parallel::Engine& engine_;
  std::unique_ptr<parallel::AdamWState> state_;
};

}  // namespace lockstep
