// What an optimizer keeps: vectors in flat memory beside the parameters, and each parameter's own
// step count.
#pragma once

#include "lockstep/optimizer_state.h"
#include "parallel/engine.h"

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::parallel {

class FlatState final : public OptimizerState {
 public:
  // One vector per slot, each fp32 (fp64 beside fp64 parameters) and zero at first. Throws
  // UsageError when the engine has an optimizer already or a parameter can't be updated.
  FlatState(Engine& engine, std::string kind, std::vector<std::string> slots);

  // Adds the state of parameters that were unfrozen since.
  void follow();

  std::int64_t& steps(std::size_t parameter) { return steps_.at(parameter); }
  // [kept elements of the parameter] of the given slot's vector.
  at::Tensor view(std::size_t parameter, std::size_t slot) const;
  // The number of a trained parameter. Throws UsageError for an unknown name.
  std::size_t number_of(const std::string& name) const;

  std::string kind() const override { return kind_; }
  std::vector<std::string> slots() const override { return slots_; }
  bool sharded() const override;
  std::pair<std::int64_t, std::int64_t> kept(const std::string& parameter) const override;
  at::Tensor elements(const std::string& slot, const std::string& parameter) const override;
  std::int64_t updates(const std::string& parameter) const override;
  void set_updates(const std::string& parameter, std::int64_t updates) override;

 private:
  Engine& engine_;
  std::string kind_;
  std::vector<std::string> slots_;
  std::vector<std::vector<at::Tensor>> flats_;  // [slot][part], each [kept().size()]
  std::vector<std::int64_t> steps_;             // per parameter
  std::size_t parts_ = 0;                       // that have their state
};

}  // namespace lockstep::parallel
