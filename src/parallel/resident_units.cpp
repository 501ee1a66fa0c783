#include "parallel/resident_units.h"

#include "parallel/gradient_hooks.h"
#include "parallel/units.h"

#include <algorithm>
#include <utility>

namespace lockstep::parallel {
namespace {

// Those of the module and of what is in it, down to the next units.
void add_own_parameters(const torch::nn::Module& module, Tensors& parameters) {
  const Tensors own = module.parameters(/*recurse=*/false);
  parameters.insert(parameters.end(), own.begin(), own.end());
  for (const std::shared_ptr<torch::nn::Module>& child : module.children()) {
    if (unit_in(child) == nullptr) {
      add_own_parameters(*child, parameters);
    }
  }
}

}  // namespace

void ResidentUnits::Piece::update() const {
  if (part == nullptr) {
    return;
  }
  if (forwards > 0 || backwards > 0) {
    part->allow_reading();
  } else {
    part->forbid_reading(why);
  }
}

// One pass's way back: begins with the first gradient of an output, ends when all inputs that take
// a gradient have theirs.
struct ResidentUnits::Backward {
  std::string unit;
  Pieces pieces;
  std::shared_ptr<UnitOrder> order;
  std::size_t inputs = 0;
  std::size_t left = 0;  // inputs without their gradient in the running backward
  int running = -1;      // that backward

  void begin() {
    if (running != running_backward()) {
      running = running_backward();
      left = inputs;
      order->note(unit, UnitOrder::Pass::backward);
      count(1);
    }
  }
  void input_done() {
    if (running == running_backward() && --left == 0) {
      count(-1);
    }
  }
  void count(int change) const {
    for (const std::shared_ptr<Piece>& piece : pieces) {
      piece->backwards = std::max(0, piece->backwards + change);
      piece->update();
    }
  }
};

ResidentUnits::ResidentUnits(const FlatModel& model) {
  std::map<const FlatParameter*, std::shared_ptr<Piece>> by_part;
  std::map<const at::TensorImpl*, std::shared_ptr<Piece>> by_parameter;
  const std::vector<std::size_t> units = units_of(model.module(), model.tensors());
  for (std::size_t i = 0; i < units.size(); ++i) {
    FlatParameter* const part = model.parts()[model.place(i).part];
    if (units[i] != 0) {  // a flat parameter is of units or of none
      auto& piece = by_part[part];
      if (piece == nullptr) {
        piece = pieces_.emplace_back(std::make_shared<Piece>(Piece{.part = part, .why = ""}));
      }
      by_parameter.emplace(model.tensors()[i].unsafeGetTensorImpl(), piece);
    }
  }
  for (const auto& item : model.module().named_modules("", /*include_self=*/false)) {
    if (unit_in(item.value()) != nullptr) {
      add(item.key(), item.value(), by_parameter);
    }
  }
  for (const std::shared_ptr<Piece>& piece : pieces_) {
    piece->update();
  }
}

void ResidentUnits::add(const std::string& name, const std::shared_ptr<torch::nn::Module>& module,
                        const std::map<const at::TensorImpl*, std::shared_ptr<Piece>>& pieces) {
  Unit unit{name, module, {}};
  Tensors parameters;
  add_own_parameters(*module, parameters);
  for (const at::Tensor& parameter : parameters) {
    const auto found = pieces.find(parameter.unsafeGetTensorImpl());
    if (found == pieces.end() || std::ranges::count(unit.pieces, found->second) > 0) {
      continue;
    }
    if (found->second->why.empty()) {
      found->second->why =
          "unit '" + name +
          "' is not gathered: its parameters can be read in its own forward and backward only (was "
          "its forward called past Unit?); elsewhere use Gathered (unit.h), "
          "Parallel::full_parameter() or with_full_parameters(), or Reshard::never "
          "(--reshard never)";
    }
    unit.pieces.push_back(found->second);
  }
  if (unit.pieces.empty()) {
    return;  // frozen, or all of it tied to what is outside; another Parallel may have it
  }
  unit_in(module)->observe(this);
  units_.emplace(unit_in(module), std::move(unit));
}

ResidentUnits::~ResidentUnits() {
  for (const auto& [base, unit] : units_) {
    unit_in(unit.module)->observe(nullptr);
  }
  for (const std::shared_ptr<Piece>& piece : pieces_) {
    piece->part->allow_reading();
    piece->part = nullptr;  // graphs may outlive this
  }
}

void ResidentUnits::before_forward(const UnitBase& unit) {
  if (running_backward() < 0) {
    end_backward();  // of one that an exception ended
  }
  for (const std::shared_ptr<Piece>& piece : pieces_of(unit)) {
    ++piece->forwards;
    piece->update();
  }
}

void ResidentUnits::after_forward(const UnitBase& unit, const Tensors& inputs,
                                  const Tensors& outputs) {
  end_forward(unit);
  if (std::ranges::none_of(outputs, takes_gradient)) {
    return;
  }
  const auto backward = std::make_shared<Backward>();
  backward->unit = units_.at(&unit).name;
  backward->pieces = pieces_of(unit);
  backward->order = order_;
  order_->note(backward->unit, UnitOrder::Pass::forward);
  for (const at::Tensor& input : inputs) {
    if (takes_gradient(input)) {
      ++backward->inputs;
      // A leaf's gradient tells nothing: it is accumulated before the rest of the unit has run.
      if (!input.is_leaf()) {
        input.register_hook([backward](const at::Tensor&) { backward->input_done(); });
      }
    }
  }
  for (const at::Tensor& output : outputs) {
    if (takes_gradient(output) && !output.is_leaf()) {
      output.register_hook([backward](const at::Tensor&) { backward->begin(); });
    }
  }
}

void ResidentUnits::end_forward(const UnitBase& unit) noexcept {
  for (const std::shared_ptr<Piece>& piece : pieces_of(unit)) {
    piece->forwards = std::max(0, piece->forwards - 1);
    piece->update();
  }
}

void ResidentUnits::end_backward() {
  for (const std::shared_ptr<Piece>& piece : pieces_) {
    if (piece->backwards > 0) {
      piece->backwards = 0;
      piece->update();
    }
  }
}

}  // namespace lockstep::parallel
