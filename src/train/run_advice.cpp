#include "train/run_advice.h"

#include "plan/advice.h"

namespace lockstep::train {
namespace {

plan::RunSetting setting_of(const Report& report, const AdviceFacts& facts) {
  const Options& options = report.options;
  return {.ranks = options.ranks,
          .threads = report.threads,
          .cores = report.cores,
          .overlap = options.overlap,
          .bucket_mb = options.bucket_mb,
          .buckets = facts.buckets,
          .micro_batch = options.micro_batch,
          .sequence = options.sequence,
          .accumulate = options.accumulate,
          .learning_rate = options.learning_rate,
          .narrow_modules = facts.narrow_modules,
          .small_shared_pages = facts.small_shared_pages};
}

plan::RunResult result_of(const Report& report, const AdviceFacts& facts) {
  plan::RunResult result{.steps = static_cast<std::int64_t>(report.history.losses.size()),
                         .skipped_steps = report.history.skipped_steps,
                         .step_ms = median(report.history.step_ms),
                         .exposed_ms = {},
                         .mfu = mfu(report),
                         .peak_flops = report.peak_flops,
                         .f32_peak_flops = facts.f32_peak_flops,
                         .gradient_bytes = report.predicted.ledger.gradients};
  for (const RankRecord& rank : report.ranks) {
    result.exposed_ms.push_back(static_cast<double>(rank.exposed_us) / 1e3);
    result.resident_bytes += rank.resident_peak();
    result.expected_bytes += rank.held.parameters + rank.held.gradients + rank.held.optimizer +
                             rank.held.transient + rank.activations_peak();
  }
  return result;
}

}  // namespace

std::vector<std::string> advice_for(const Report& report, const AdviceFacts& facts) {
  return plan::advise(setting_of(report, facts), result_of(report, facts));
}

}  // namespace lockstep::train
