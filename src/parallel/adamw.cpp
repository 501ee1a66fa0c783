#include "lockstep/optim.h"
#include "parallel/engine.h"
#include "parallel/flat_state.h"
#include "parallel/parameter_groups.h"

namespace lockstep {
namespace {

std::unique_ptr<torch::optim::OptimizerOptions> torch_options(const AdamWOptions& options,
                                                              double weight_decay) {
  return std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(options.lr)
                                                          .betas({options.beta1, options.beta2})
                                                          .eps(options.eps)
                                                          .weight_decay(weight_decay));
}

optim::AdamWStep step_of(const torch::optim::AdamWOptions& options, std::int64_t step, float clip) {
  if (options.amsgrad()) {
    throw UsageError("AdamW: amsgrad is not built; set amsgrad(false) in the parameter group");
  }
  optim::AdamWStep result;
  result.lr = options.lr();
  result.beta1 = std::get<0>(options.betas());
  result.beta2 = std::get<1>(options.betas());
  result.eps = options.eps();
  result.weight_decay = options.weight_decay();
  result.step = step;
  result.clip = clip;
  return result;
}

}  // namespace

AdamW::AdamW(parallel::Engine& engine, const AdamWOptions& options,
             const std::vector<ParameterGroup<AdamWOptions>>& groups)
    : FlatOptimizer(engine, parallel::parameter_groups(engine, options, groups, torch_options),
                    torch_options(options, options.weight_decay), "adamw",
                    {"exp_avg", "exp_avg_sq"}) {}

void AdamW::update(const parallel::Update& update, const torch::optim::OptimizerOptions& options) {
  const optim::AdamWVectors vectors{
      .parameter = update.values,
      .master = update.master,
      .first_moment = kept().view(update.parameter, 0).mutable_data_ptr(),
      .second_moment = kept().view(update.parameter, 1).mutable_data_ptr(),
      .gradient = update.gradient};
  engine().device().adamw(vectors,
                          step_of(dynamic_cast<const torch::optim::AdamWOptions&>(options),
                                  kept().steps(update.parameter), engine().clip_factor()),
                          update.count);
}

}  // namespace lockstep
