#include "train/prediction.h"

#include "models/parameter_list.h"
#include "optim/norm.h"

namespace lockstep::train {
namespace {

int optimizer_vectors(const Options& options) {
  if (options.optimizer == OptimizerName::adamw) {
    return 2;
  }
  return options.momentum > 0 ? 1 : 0;
}

}  // namespace

std::vector<plan::Parameter> planned_parameters(const models::ModelConfig& config,
                                                const Options& options) {
  std::vector<plan::Parameter> parameters;
  for (const models::ListedParameter& one : models::parameters_of(config)) {
    const bool narrow = options.precision == PrecisionName::bf16 && !models::keep_f32(one.name);
    parameters.push_back(
        {.elements = one.elements, .dtype = narrow ? Dtype::bf16 : Dtype::f32, .unit = one.unit});
  }
  return parameters;
}

plan::Training planned_training(const Options& options) {
  return {.stage = options.stage,
          .ranks = options.ranks,
          .micro_batches = options.accumulate,
          .reproducible = options.reproducible,
          .accumulate_in_shard = options.accumulate_in_shard.value_or(true),
          .share_parameters = options.share_parameters,
          .over_network = options.over_network(),
          .unit_blocks = options.unit_blocks.value_or(1),
          .bucket_mb = options.bucket_mb,
          .optimizer_vectors = optimizer_vectors(options)};
}

Prediction predict(const models::ModelConfig& config, const Options& options) {
  const auto parameters = planned_parameters(config, options);
  const plan::Training training = planned_training(options);
  // The ranks decide on a step by the norm's digits, a flag for what is not finite, and one count
  // per parameter; where units are freed also by two numbers that tell their order.
  const bool frees_units = options.reshard.value_or(false);
  const plan::SmallCollectives small{
      .decision_elements = optim::ExactSum::kDigits + 1 +
                           static_cast<std::int64_t>(parameters.size()) + (frees_units ? 2 : 0),
      .losses = options.accumulate};
  return {plan::ledger(parameters, training),
          plan::step_traffic(parameters, training, /*rank=*/0, small)};
}

}  // namespace lockstep::train
