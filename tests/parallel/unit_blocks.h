// A module whose blocks are units; tests give it a forward.
#pragma once

#include "lockstep/unit.h"

#include <torch/torch.h>

#include <string>
#include <vector>

namespace lockstep::test {

template <class Block>
struct UnitBlocks : torch::nn::Module {
  UnitBlocks() {
    first = register_module("first", torch::nn::Linear(8, 8));
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Unit<Block>()));
    }
  }
  torch::nn::Linear first{nullptr};
  std::vector<Unit<Block>> blocks;
};

}  // namespace lockstep::test
