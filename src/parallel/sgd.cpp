#include "lockstep/optim.h"
#include "parallel/engine.h"
#include "parallel/flat_state.h"
#include "parallel/parameter_groups.h"

#include <algorithm>

namespace lockstep {
namespace {

std::unique_ptr<torch::optim::OptimizerOptions> torch_options(const SGDOptions& options,
                                                              double weight_decay) {
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw UsageError("SGD: nesterov needs momentum > 0 and dampening 0, got momentum " +
                     std::to_string(options.momentum) + " and dampening " +
                     std::to_string(options.dampening));
  }
  return std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(options.lr)
                                                        .momentum(options.momentum)
                                                        .dampening(options.dampening)
                                                        .weight_decay(weight_decay)
                                                        .nesterov(options.nesterov));
}

std::vector<std::string> slots_of(const SGDOptions& options,
                                  const std::vector<ParameterGroup<SGDOptions>>& groups) {
  const auto has_momentum = [](const ParameterGroup<SGDOptions>& group) {
    return group.options.momentum != 0;
  };
  const bool any = options.momentum != 0 || std::ranges::any_of(groups, has_momentum);
  return any ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
}

}  // namespace

SGD::SGD(parallel::Engine& engine, const SGDOptions& options,
         const std::vector<ParameterGroup<SGDOptions>>& groups)
    : FlatOptimizer(engine, parallel::parameter_groups(engine, options, groups, torch_options),
                    torch_options(options, options.weight_decay), "sgd",
                    slots_of(options, groups)) {}

void SGD::update(const parallel::Update& update, const torch::optim::OptimizerOptions& options) {
  const auto& chosen = dynamic_cast<const torch::optim::SGDOptions&>(options);
  optim::SgdVectors vectors{
      .parameter = update.values, .master = update.master, .gradient = update.gradient};
  if (chosen.momentum() != 0) {
    if (kept().slots().empty()) {
      throw UsageError(
          "SGD: momentum was set after the optimizer was made without any; give it "
          "to Parallel::sgd()");
    }
    vectors.momentum = kept().view(update.parameter, 0).mutable_data_ptr();
  }
  engine().device().sgd(vectors,
                        {.lr = chosen.lr(),
                         .momentum = chosen.momentum(),
                         .dampening = chosen.dampening(),
                         .weight_decay = chosen.weight_decay(),
                         .nesterov = chosen.nesterov(),
                         .step = kept().steps(update.parameter),
                         .clip = engine().clip_factor()},
                        update.count);
}

}  // namespace lockstep
