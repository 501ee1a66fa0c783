#include "lockstep/unit.h"

namespace lockstep {

Gathered::Gathered(const torch::nn::Module& module) { gather(module); }

void Gathered::gather(const torch::nn::Module& module) {
  const auto* const unit = dynamic_cast<const UnitBase*>(&module);
  if (unit != nullptr && unit->observer() != nullptr) {
    unit->observer()->before_forward(*unit);
    units_.push_back(unit);
  }
  for (const std::shared_ptr<torch::nn::Module>& child : module.children()) {
    gather(*child);
  }
}

Gathered::~Gathered() {
  for (const UnitBase* unit : units_) {
    if (unit->observer() != nullptr) {
      unit->observer()->end_forward(*unit);
    }
  }
}

}  // namespace lockstep
