// Has the units of a module recompute their activations in backward, while it lives.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

namespace lockstep::parallel {

class RecomputingUnits {
 public:
  // All but the module itself, unless it is the only one. `before_backward` is called in the
  // running backward before a unit begins its own. Throws UsageError when the module has no unit,
  // or another RecomputingUnits has them.
  RecomputingUnits(torch::nn::Module& module, std::function<void()> before_backward);
  ~RecomputingUnits();
  RecomputingUnits(const RecomputingUnits&) = delete;
  RecomputingUnits& operator=(const RecomputingUnits&) = delete;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> units_;
  std::shared_ptr<std::function<void()>> before_backward_;  // graphs may outlive this
};

}  // namespace lockstep::parallel
