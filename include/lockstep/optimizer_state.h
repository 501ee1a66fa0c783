// What an optimizer remembers, by parameter: how checkpoints read and write it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
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
  // Does every rank keep a part of the elements only?
  virtual bool sharded() const = 0;
  // The elements [first, second) of a parameter that this rank keeps: all, or its shard's.
  virtual std::pair<std::int64_t, std::int64_t> kept(const std::string& parameter) const = 0;
  // The kept elements of a parameter's slot, row-major: f32 (f64 of an f64 parameter). A view to be
  // read or written; where it is not sharded, by the same values on every rank.
  virtual torch::Tensor elements(const std::string& slot, const std::string& parameter) const = 0;
  // How often a parameter was updated.
  virtual std::int64_t updates(const std::string& parameter) const = 0;
  virtual void set_updates(const std::string& parameter, std::int64_t updates) = 0;
};

}  // namespace lockstep
