#include "parallel/recomputing_units.h"

#include "lockstep/error.h"
#include "parallel/units.h"

#include <string>
#include <utility>

namespace lockstep::parallel {

RecomputingUnits::RecomputingUnits(torch::nn::Module& module, std::function<void()> before_backward)
    : before_backward_(std::make_shared<std::function<void()>>(std::move(before_backward))) {
  std::vector<std::string> names;
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    if (unit_in(item.value()) != nullptr) {
      names.push_back(item.key());
      units_.push_back(item.value());
    }
  }
  if (units_.empty() && dynamic_cast<UnitBase*>(&module) != nullptr) {
    names.push_back(module.name());
    units_.push_back(module.shared_from_this());  // around other units it would only run them again
  }
  if (units_.empty()) {
    throw UsageError(
        "recompute: the module has no unit to recompute; make its blocks lockstep::Unit<Block> "
        "(unit.h), or turn recompute off");
  }
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (unit_in(units_[i])->recomputing()) {
      throw UsageError("recompute: another Parallel recomputes unit '" + names[i] +
                       "' of this module; turn recompute off for one of the two");
    }
  }
  for (std::size_t i = 0; i < units_.size(); ++i) {
    unit_in(units_[i])->recompute(before_backward_, names[i]);
  }
}

RecomputingUnits::~RecomputingUnits() {
  *before_backward_ = nullptr;
  for (const std::shared_ptr<torch::nn::Module>& unit : units_) {
    unit_in(unit)->recompute(nullptr, "");
  }
}

}  // namespace lockstep::parallel
