// Gathers a unit's parameters for its forward and for its backward, and frees them in between
// (zero3 with Reshard::always). On one host the values stay where they are, in memory that all
// ranks read: gathering is leave to read them, and freeing takes it back, so that a program that
// would read what is not there between hosts fails here, with the unit's name.
#pragma once

#include "lockstep/unit.h"
#include "parallel/flat_model.h"
#include "parallel/flat_parameter.h"
#include "parallel/unit_order.h"

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::parallel {

class ResidentUnits final : public UnitObserver {
 public:
  // Frees the flat parameters that lie in units only; what is outside of all stays.
  explicit ResidentUnits(const FlatModel& model);
  // Gathers all for good.
  ~ResidentUnits() override;
  ResidentUnits(const ResidentUnits&) = delete;
  ResidentUnits& operator=(const ResidentUnits&) = delete;

  void before_forward(const UnitBase& unit) override;
  void after_forward(const UnitBase& unit, const Tensors& inputs, const Tensors& outputs) override;
  void end_forward(const UnitBase& unit) noexcept override;

  // Frees what a backward that has ended left: units whose inputs took no gradient, and what an
  // exception cut short.
  void end_backward();

  // Of the passes that need, or are, a backward.
  UnitOrder& order() { return *order_; }

 private:
  // What is gathered and freed as one: a flat parameter, of one unit or of several in a row.
  struct Piece {
    FlatParameter* part;  // nullptr once nobody frees it any more
    std::string why;      // it can't be read, when it can't
    int forwards = 0;     // of its units, going on now
    int backwards = 0;    // likewise
    void update() const;
  };
  using Pieces = std::vector<std::shared_ptr<Piece>>;
  struct Unit {
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    Pieces pieces;
  };
  struct Backward;

  void add(const std::string& name, const std::shared_ptr<torch::nn::Module>& module,
           const std::map<const at::TensorImpl*, std::shared_ptr<Piece>>& pieces);
  const Pieces& pieces_of(const UnitBase& unit) const { return units_.at(&unit).pieces; }

  Pieces pieces_;
  std::map<const UnitBase*, Unit> units_;
  std::shared_ptr<UnitOrder> order_ = std::make_shared<UnitOrder>();  // graphs may outlive this
};

}  // namespace lockstep::parallel
