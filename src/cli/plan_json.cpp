#include "cli/plan_json.h"

#include <optional>
#include <string>

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;
using plan::PlanAnswer;
using plan::StageAnswer;

std::string name(Stage stage) { return std::string(name_of(stage)); }

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json stage_or_null(const std::optional<Stage>& stage) {
  return stage ? ordered_json(name(*stage)) : ordered_json(nullptr);
}

std::string lane_name(plan::Lane lane) {
  switch (lane) {
    case plan::Lane::compute:
      return "compute";
    case plan::Lane::inside:
      return "inside";
    case plan::Lane::between:
      return "between";
  }
  return "?";
}

ordered_json stage_json(const StageAnswer& one) {
  const ordered_json step_ms =
      one.time ? ordered_json(one.time->step_s * 1e3) : ordered_json(nullptr);
  return {{"stage", name(one.stage)},
          {"bytes",
           {{"parameters", one.bytes.parameters},
            {"gradients", one.bytes.gradients},
            {"optimizer", one.bytes.optimizer},
            {"transient", one.bytes.transient},
            {"activations", one.activations},
            {"total", one.total_bytes}}},
          {"sent", one.sent.total()},
          {"floor_ms", one.floor_ms},
          {"step_ms", step_ms},
          {"fits", one.fits}};
}

void add_details(ordered_json& json, const StageAnswer& one) {
  json["sent_gradients"] = one.sent.gradients;
  json["sent_parameters"] = one.sent.parameters;
  json["sent_replicas"] = one.sent.replicas;
  json["sent_by_host"] = one.sent_by_host;
  if (one.time) {
    json["exposed_ms"] = one.time->exposed_s * 1e3;
    json["compute_ms"] = one.time->compute_s * 1e3;
    json["communication_ms"] = one.time->communication_s * 1e3;
    json["tokens_per_s"] = one.tokens_per_s;
    json["efficiency"] = one.efficiency;
  }
  json["smallest_ranks"] = or_null(one.smallest_ranks);
  json["largest_micro_batch"] = or_null(one.largest_micro_batch);
  json["largest_parameters"] = or_null(one.largest_parameters);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += (text.empty() ? "" : ". ") + line;
  }
  return text;
}

ordered_json curve_json(const plan::Curve& curve) {
  ordered_json points = ordered_json::array();
  for (const plan::CurvePoint& point : curve.points) {
    points.push_back({{"ranks", point.ranks},
                      {"total", point.total_bytes},
                      {"sent", point.sent},
                      {"floor_ms", point.floor_ms},
                      {"step_ms", or_null(point.step_ms)},
                      {"exposed_ms", point.exposed_ms},
                      {"tokens_per_s", point.tokens_per_s},
                      {"efficiency", point.efficiency}});
  }
  return {{"stage", name(curve.stage)}, {"points", std::move(points)}};
}

ordered_json span_json(const plan::Span& span) {
  return {{"lane", lane_name(span.lane)},
          {"kind", std::string(name_of(span.kind))},
          {"part", span.part},
          {"micro_batch", span.micro_batch},
          {"begin_ms", span.begin_s * 1e3},
          {"end_ms", span.end_s * 1e3}};
}

}  // namespace

ordered_json plan_json(const PlanAnswer& answer) {
  ordered_json json{{"parameters", answer.parameters}, {"ranks", answer.ranks}};
  json["stages"] = ordered_json::array();
  ordered_json smallest_ranks = ordered_json::object();
  for (const StageAnswer& one : answer.stages) {
    json["stages"].push_back(stage_json(one));
    smallest_ranks[name(one.stage)] = or_null(one.smallest_ranks);
  }
  json["smallest_stage"] = stage_or_null(answer.smallest_stage);
  json["smallest_ranks"] = std::move(smallest_ranks);
  json["advice"] = joined(answer.advice);
  return json;
}

ordered_json plan_page_json(const plan::PlanQuery& query, const PlanAnswer& answer) {
  ordered_json json = plan_json(answer);
  json["hosts"] = answer.dials.hosts();
  json["ranks_per_host"] = answer.dials.ranks_per_host;
  json["shard_size"] = answer.dials.shard_size;
  json["device_memory"] = answer.device_memory;
  json["hardware"] = {{"name", query.hardware.name},
                      {"description", query.hardware.description},
                      {"source", query.hardware.source}};
  json["parts_known"] = answer.parts_known;
  json["tokens_per_step"] = answer.tokens_per_step;
  json["advised"] = stage_or_null(answer.advised);
  json["reasons"] = answer.advice;
  json["activations"] = {{"block", answer.activations.block},
                         {"kept", answer.activations.kept},
                         {"head", answer.activations.head},
                         {"peak", answer.activations.peak}};
  for (std::size_t i = 0; i < answer.stages.size(); ++i) {
    add_details(json["stages"][i], answer.stages[i]);
  }
  json["curves"] = ordered_json::array();
  for (const plan::Curve& curve : answer.curves) {
    json["curves"].push_back(curve_json(curve));
  }
  json["timeline"] = ordered_json::array();
  for (const plan::Span& span : answer.timeline) {
    json["timeline"].push_back(span_json(span));
  }
  return json;
}

}  // namespace lockstep::cli
