#include "train/prediction.h"

#include "models/registry.h"
#include "optim/norm.h"
#include "parallel/units.h"

#include <vector>

namespace lockstep::train {
namespace {

std::vector<plan::Parameter> parameters_of(const torch::nn::Module& model,
                                           PrecisionName precision) {
  const auto named = model.named_parameters();
  const std::vector<std::size_t> units = parallel::units_of(model, named.values());
  std::vector<plan::Parameter> parameters;
  for (const auto& item : named) {
    const bool narrow = precision == PrecisionName::bf16 && !models::keep_f32(item.key());
    parameters.push_back({.elements = item.value().numel(),
                          .dtype = narrow ? Dtype::bf16 : Dtype::f32,
                          .trainable = item.value().requires_grad(),
                          .unit = units[parameters.size()]});
  }
  return parameters;
}

int optimizer_vectors(const Options& options) {
  if (options.optimizer == OptimizerName::adamw) {
    return 2;
  }
  return options.momentum > 0 ? 1 : 0;
}

}  // namespace

Prediction predict(const torch::nn::Module& model, const Options& options) {
  const auto parameters = parameters_of(model, options.precision);
  const plan::Training training{.stage = options.stage,
                                .ranks = options.ranks,
                                .micro_batches = options.accumulate,
                                .reproducible = options.reproducible,
                                .accumulate_in_shard = options.accumulate_in_shard.value_or(true),
                                .unit_blocks = options.unit_blocks.value_or(1),
                                .bucket_mb = options.bucket_mb,
                                .optimizer_vectors = optimizer_vectors(options)};
  // The ranks decide on a step by the norm's digits, a flag for what is not finite, and one count
  // per parameter.
  const plan::SmallCollectives small{
      .decision_elements =
          optim::ExactSum::kDigits + 1 + static_cast<std::int64_t>(parameters.size()),
      .losses = options.accumulate};
  return {plan::ledger(parameters, training),
          plan::step_traffic(parameters, training, /*rank=*/0, small)};
}

}  // namespace lockstep::train
