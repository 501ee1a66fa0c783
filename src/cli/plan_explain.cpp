#include "cli/plan_explain.h"

#include "cli/figures.h"

#include <algorithm>
#include <cstdio>

namespace lockstep::cli {
namespace {

using plan::PlanAnswer;
using plan::PlanQuery;
using plan::StageAnswer;

std::string name(Stage stage) { return std::string(name_of(stage)); }

std::string category(const std::string& what, const plan::PerElement& size, const plan::Amount& all,
                     std::int64_t shards, std::int64_t bytes) {
  std::string text = "  " + left(what, 12) + std::to_string(size.narrow) + " x ";
  const std::string narrow = with_commas(all.narrow);
  text += shards == 1 ? narrow : "ceil(" + narrow + " / " + with_commas(shards) + ")";
  if (all.wide > 0) {
    const std::string wide = with_commas(all.wide);
    text += " + " + std::to_string(size.wide) + " x " +
            (shards == 1 ? wide : "ceil(" + wide + " / " + with_commas(shards) + ")");
  }
  return text + " = " + with_commas(bytes) + "\n";
}

std::string memory(const PlanQuery& query, const PlanAnswer& answer, const StageAnswer& one) {
  const plan::Dials& dials = answer.dials;
  const plan::Recipe recipe = plan::recipe_of(one.stage, dials);
  const plan::Shards shards = plan::shards_of(one.stage, dials);
  const plan::Amount& trained = answer.trained;
  std::string text;
  text += category("parameters", recipe.parameter, trained, shards.parameters,
                   one.bytes.parameters - recipe.parameter.bytes(answer.frozen));
  if (query.frozen_ppm > 0) {
    text += category("  frozen", recipe.parameter, answer.frozen, 1,
                     recipe.parameter.bytes(answer.frozen));
  }
  text += category("gradients", recipe.gradient, trained, shards.gradients, one.bytes.gradients);
  text += category("optimizer", recipe.optimizer, trained, shards.optimizer, one.bytes.optimizer);
  text += "  " + left("transient", 12) + with_commas(one.bytes.transient) +
          (answer.parts_known ? " (gathered units, two gradients in flight)\n"
                              : " (blocks are not known)\n");
  text += "  " + left("activations", 12) + with_commas(one.activations) +
          (query.transformer ? " (blocks " + with_commas(answer.activations.kept) +
                                   ", then the larger of head and loss " +
                                   with_commas(answer.activations.head) + " and one backward)\n"
                             : " (the model's shape is not known)\n");
  return text + "  " + left("total", 12) + with_commas(one.total_bytes) + " = " +
         in_gb(one.total_bytes) + " GB = " + in_gib(one.total_bytes) + " GiB, " +
         (one.fits ? "<= " : "> ") + with_commas(answer.device_memory) + "\n";
}

std::string formula_of_sent(Stage stage) {
  switch (stage) {
    case Stage::ddp:
      return "2 (P-1)/P X";
    case Stage::zero1:
    case Stage::zero2:
      return "(P-1)/P (X + W)";
    case Stage::zero3:
      return "(P-1)/P (2 W + X)";
    case Stage::hybrid:
      return "(G-1)/G (2 W + X) + 2 (R-1)/R X/G";
    default:
      return "nothing";
  }
}

std::string traffic(const PlanQuery& query, const PlanAnswer& answer, const StageAnswer& one) {
  std::string text =
      "  " + left("sent", 12) + formula_of_sent(one.stage) + ": gradients " +
      with_commas(one.sent.gradients) + " + parameters " + with_commas(one.sent.parameters) +
      (one.sent.replicas > 0 ? " + replicas " + with_commas(one.sent.replicas) : "") + " = " +
      with_commas(one.sent.total()) + "\n";
  const bool by_host = one.sent_by_host > 0;
  const double bandwidth =
      by_host ? query.hardware.between.bytes_per_s : query.hardware.inside.bytes_per_s;
  char line[160];
  std::snprintf(line, sizeof(line), "  %-12s%s bytes / %.4g GB/s %s = %s\n", "floor",
                with_commas(by_host ? one.sent_by_host : one.sent.total()).c_str(), bandwidth / 1e9,
                by_host ? "between hosts" : "of one rank", duration(one.floor_ms).c_str());
  text += answer.ranks > 1 && one.stage != Stage::single ? line : "";
  return text;
}

std::string time(const StageAnswer& one) {
  if (!one.time) {
    return "  step        --algorithm can't add up what this stage adds up\n";
  }
  return "  step        computing " + duration(one.time->compute_s * 1e3) + " + exposed " +
         duration(one.time->exposed_s * 1e3) + " of " + duration(one.time->communication_s * 1e3) +
         " of communication = " + duration(one.time->step_s * 1e3) + "\n";
}

std::string letters(const PlanQuery& query, const PlanAnswer& answer) {
  const plan::Dials& dials = answer.dials;
  char line[200];
  std::snprintf(line, sizeof(line),
                "N = %s parameters, P = %d ranks, k = %lld micro-batches; X and W: bytes of "
                "gradients and parameters; G = %d ranks of a shard group, R = %d replicas\n",
                with_commas(answer.parameters).c_str(), dials.ranks,
                static_cast<long long>(dials.accumulate), dials.shard_size,
                dials.ranks / dials.shard_size);
  std::string text = line;
  const double peak = query.precision == plan::Precision::bf16 ? query.hardware.bf16_flops
                                                               : query.hardware.f32_flops;
  std::snprintf(line, sizeof(line),
                "Computing: %.4g operations of one rank and step / (%.4g x %.2f per second)\n",
                answer.operations_per_step, peak, query.hardware.reached);
  return text + line + query.hardware.name + ": " + query.hardware.source + "\n";
}

}  // namespace

std::string plan_explanation(const PlanQuery& query, const PlanAnswer& answer) {
  std::string text = letters(query, answer);
  for (const StageAnswer& one : answer.stages) {
    text += "\n" + name(one.stage) + "\n" + memory(query, answer, one) +
            traffic(query, answer, one) + time(one);
  }
  text += "\n";
  for (const std::string& line : answer.advice) {
    text += "- " + line + "\n";
  }
  return text;
}

}  // namespace lockstep::cli
