// In which order the units of a module take part in the passes of a step. Where units are gathered
// and freed all ranks must gather the same ones in the same order; on one host a rank that does not
// would go unnoticed until the program runs on several, so it is named here.
//
// A step's order is recorded leaf by leaf and compared between ranks at its end: the first step's
// as every later one's. It may differ from step to step (a module that skips blocks at random), as
// long as all ranks' differs alike; a leaf in which a rank used no unit at all (it has run out of
// data) is not compared.
#pragma once

#include "lockstep/group.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::parallel {

class UnitOrder {
 public:
  enum class Pass : std::uint8_t { forward, backward };

  void note(const std::string& unit, Pass pass);
  void end_leaf();
  // The step was abandoned.
  void forget();

  // Of the step so far: equal on two ranks whose orders are, and most likely only there.
  std::uint32_t digest() const;
  // Collective: compares the step's order with the other ranks'. Throws Mismatch on all of them,
  // with the leaf, the position, the units and two ranks, the one that kept to the order before
  // named first.
  void verify(Group& group) const;
  // The step ended, and all ranks agreed: the next one begins, and will be told from this one.
  void end_step();

 private:
  using Leaf = std::vector<std::string>;  // "forward of 'h.3'"

  std::string text() const;

  std::vector<Leaf> leaves_{1};
  std::vector<Leaf> before_;
};

}  // namespace lockstep::parallel
