// What an optimizer remembers, by parameter: how checkpoints read and write it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// A view of an optimizer that Parallel made; lives as long as that optimizer. For trained
// parameters only, by their names in the module. Throws UsageError for other names.
class OptimizerState {
 public:
  virtual ~OptimizerState() = default;

  // "adamw", "sgd", …: state of one kind means nothing to another.
  virtual std::string kind() const = 0;
  // What it keeps per element, in a fixed order, by torch.optim's names: {"exp_avg", "exp_avg_sq"}.
  // May be empty.
  virtual std::vector<std::string> slots() const = 0;
  // All elements of a parameter's slot, row-major: [numel], f32 (f64 of an f64 parameter). A view
  // to be read or written, by the same values on every rank.
  virtual torch::Tensor elements(const std::string& slot, const std::string& parameter) const = 0;
  // How often a parameter was updated.
  virtual std::int64_t updates(const std::string& parameter) const = 0;
  virtual void set_updates(const std::string& parameter, std::int64_t updates) = 0;
};

}  // namespace lockstep
