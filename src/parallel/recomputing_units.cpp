#include "parallel/recomputing_units.h"

#include "lockstep/error.h"
#include "parallel/units.h"

#include <utility>

namespace lockstep::parallel {

RecomputingUnits::RecomputingUnits(torch::nn::Module& module, std::function<void()> before_backward)
    : before_backward_(std::make_shared<std::function<void()>>(std::move(before_backward))) {
  for (const std::shared_ptr<torch::nn::Module>& one : module.modules(/*include_self=*/false)) {
    if (unit_in(one) != nullptr) {
      units_.push_back(one);
    }
  }
  if (units_.empty() && dynamic_cast<UnitBase*>(&module) != nullptr) {
    units_.push_back(module.shared_from_this());  // around other units it would only run them again
  }
  if (units_.empty()) {
    throw UsageError(
        "recompute: the module has no unit to recompute; make its blocks lockstep::Unit<Block> "
        "(unit.h), or turn recompute off");
  }
  for (const std::shared_ptr<torch::nn::Module>& unit : units_) {
    if (unit_in(unit)->recomputing()) {
      throw UsageError(
          "recompute: another Parallel recomputes a unit of this module; turn recompute off for "
          "one "
          "of the two");
    }
  }
  for (const std::shared_ptr<torch::nn::Module>& unit : units_) {
    unit_in(unit)->recompute(before_backward_);
  }
}

RecomputingUnits::~RecomputingUnits() {
  *before_backward_ = nullptr;
  for (const std::shared_ptr<torch::nn::Module>& unit : units_) {
    unit_in(unit)->recompute(nullptr);
  }
}

}  // namespace lockstep::parallel
