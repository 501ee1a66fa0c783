// Turns options given by predicate into LibTorch's parameter groups.
#pragma once

#include "lockstep/optim.h"
#include "parallel/engine.h"

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::parallel {

using TorchGroups = std::vector<torch::optim::OptimizerParamGroup>;

// The parameters of the module, frozen ones included, in groups as optim.h orders them.
// `torch_options(options, decay)` makes LibTorch's options.
template <class Options, class MakeOptions>
TorchGroups parameter_groups(const Engine& engine, const Options& options,
                             const std::vector<ParameterGroup<Options>>& groups,
                             const MakeOptions& torch_options) {
  std::vector<const Options*> choices{&options};
  for (const ParameterGroup<Options>& group : groups) {
    choices.push_back(&group.options);
  }
  const auto choice_of = [&groups](const NamedParameter& parameter) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].holds && groups[i].holds(parameter.name, parameter.tensor)) {
        return i + 1;
      }
    }
    return std::size_t{0};
  };
  std::vector<std::vector<torch::Tensor>> decayed(choices.size());
  std::vector<std::vector<torch::Tensor>> others(choices.size());
  for (const NamedParameter& parameter : engine.listed()) {
    const std::size_t i = choice_of(parameter);
    const ParameterPredicate& decays = choices[i]->decays;
    const bool decay = !decays || decays(parameter.name, parameter.tensor);
    (decay ? decayed : others)[i].push_back(parameter.tensor);
  }
  TorchGroups result;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto add = [&](std::vector<torch::Tensor>& tensors, double decay) {
      if (!tensors.empty() || result.empty()) {
        result.emplace_back(std::move(tensors), torch_options(*choices[i], decay));
      }
    };
    add(decayed[i], choices[i]->weight_decay);
    add(others[i], 0.0);
  }
  return result;
}

}  // namespace lockstep::parallel
