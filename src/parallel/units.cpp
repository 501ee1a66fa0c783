#include "parallel/units.h"

#include <map>
#include <memory>

namespace lockstep::parallel {
namespace {

// Numbers the units of a module and notes whose each parameter is.
class Walk {
 public:
  void visit(const torch::nn::Module& module, std::size_t unit) {
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      const auto [place, is_new] = units_.emplace(item.value().unsafeGetTensorImpl(), unit);
      if (!is_new && place->second != unit) {
        place->second = 0;
      }
    }
    for (const std::shared_ptr<torch::nn::Module>& child : module.children()) {
      visit(*child, unit_in(child) != nullptr ? number_of(*child) : unit);
    }
  }
  std::size_t unit_of(const at::Tensor& parameter) const {
    return units_.at(parameter.unsafeGetTensorImpl());
  }

 private:
  // A module that is registered twice is one unit.
  std::size_t number_of(const torch::nn::Module& module) {
    return numbers_.emplace(&module, numbers_.size() + 1).first->second;
  }

  std::map<const torch::nn::Module*, std::size_t> numbers_;
  std::map<const c10::TensorImpl*, std::size_t> units_;
};

}  // namespace

UnitBase* unit_in(const std::shared_ptr<torch::nn::Module>& module) {
  return dynamic_cast<UnitBase*>(module.get());
}

std::vector<std::size_t> units_of(const torch::nn::Module& module,
                                  const std::vector<at::Tensor>& parameters) {
  Walk walk;
  walk.visit(module, 0);
  std::vector<std::size_t> units;
  for (const at::Tensor& parameter : parameters) {
    units.push_back(walk.unit_of(parameter));
  }
  return units;
}

}  // namespace lockstep::parallel
