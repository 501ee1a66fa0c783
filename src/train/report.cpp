#include "train/report.h"

#include "machine/processors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

Json ledger_json(const plan::Ledger& bytes) {
  return {{"parameters", bytes.parameters},
          {"gradients", bytes.gradients},
          {"optimizer", bytes.optimizer},
          {"transient_peak", bytes.transient}};
}

// Of those that were looked at.
Json phases_json(const RankRecord& rank) {
  Json phases = Json::object();
  for (std::size_t i = 0; i < kMoments; ++i) {
    const MemorySample& sample = rank.phases[i];
    if (sample.resident) {
      phases[std::string(name_of(static_cast<Moment>(i)))] = {
          {"parameters", sample.held.parameters},
          {"gradients", sample.held.gradients},
          {"optimizer", sample.held.optimizer},
          {"transient", sample.held.transient},
          {"activations", sample.activations},
          {"activations_peak", sample.activations_peak},
          {"pss", *sample.resident}};
    }
  }
  return phases;
}

Json memory_json(const Report& report) {
  Json per_rank = Json::array();
  Json phases = Json::array();
  for (const RankRecord& rank : report.ranks) {
    Json entry = ledger_json(rank.held);
    entry["activations_peak"] = rank.activations_peak();
    entry["baseline"] = rank.baseline;
    entry["pss_at_rest"] = rank.resident_at_rest();
    entry["pss_peak"] = rank.resident_peak();
    per_rank.push_back(std::move(entry));
    phases.push_back(phases_json(rank));
  }
  // Activations have no formula yet, and what is resident during a step hangs on them.
  Json predicted = ledger_json(report.predicted.ledger);
  predicted["pss_at_rest"] = report.predicted.ledger.total();
  for (const char* unknown : {"activations_peak", "baseline", "pss_peak"}) {
    predicted[unknown] = nullptr;
  }
  return {{"per_rank", std::move(per_rank)},
          {"predicted", std::move(predicted)},
          {"phases", std::move(phases)},
          {"shared", {{"pss", shared_resident(report)}, {"memfds", report.shared_allocated}}}};
}

Json traffic_json(const Report& report) {
  Json per_rank = Json::array();
  for (const RankRecord& rank : report.ranks) {
    per_rank.push_back(
        {{"sent", rank.sent}, {"received", rank.received}, {"collectives", rank.collectives}});
  }
  const std::int64_t sent =
      report.predicted.step.sent * static_cast<std::int64_t>(report.history.losses.size());
  return {{"per_rank", std::move(per_rank)}, {"predicted", {{"sent", sent}}}};
}

Json validation_json(const History& history) {
  Json points = Json::array();
  for (const ValidationPoint& point : history.validation) {
    points.push_back({{"step", point.step}, {"loss", point.loss}});
  }
  return points;
}

Json step_ms_json(const std::vector<double>& step_ms) {
  if (step_ms.empty()) {
    return {{"median", 0.0}, {"min", 0.0}, {"max", 0.0}};
  }
  const auto [least, most] = std::ranges::minmax(step_ms);
  return {{"median", median(step_ms)}, {"min", least}, {"max", most}};
}

Json forwards_json(const Report& report) {
  Json forwards = Json::array();
  for (const RankRecord& rank : report.ranks) {
    forwards.push_back(rank.forwards);
  }
  return forwards;
}

void add_configuration(Json& json, const Report& report) {
  const Options& options = report.options;
  json["version"] = LOCKSTEP_VERSION;
  json["command"] = report.command;
  json["model"] = options.model;
  json["parameters"] = report.parameters;
  json["ranks"] = options.ranks;
  json["hosts"] = 1;
  json["stage"] = name_of(options.stage);
  json["precision"] = name_of(options.precision);
  json["seed"] = options.seed;
  json["micro_batch"] = options.micro_batch;
  json["accumulate"] = options.accumulate;
  json["threads"] = report.threads;
  json["global_batch_tokens"] = tokens_per_step(options);
  json["steps"] = options.steps;
  json["first_step"] = report.first_step;
}

void add_speed(Json& json, const Report& report) {
  json["step_ms"] = step_ms_json(report.history.step_ms);
  json["tokens_per_s"] = tokens_per_second(report);
  json["model_flops_per_step"] = report.flops_per_step;
  json["mfu"] = mfu(report);
  json["exposed_comm_ms"] = median(report.history.exposed_ms);
}

}  // namespace

std::int64_t RankRecord::activations_peak() const {
  return std::ranges::max_element(phases, {}, &MemorySample::activations)->activations;
}

std::int64_t RankRecord::resident_at_rest() const {
  return at(Moment::before_forward).resident.value_or(0);
}

std::int64_t RankRecord::resident_peak() const {
  return std::ranges::max_element(phases, {}, &MemorySample::resident)->resident.value_or(0);
}

std::vector<RankRecord> gather_records(Group& group, const RankRecord& mine) {
  static_assert(std::is_trivially_copyable_v<RankRecord>);
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(RankRecord));
  std::vector<RankRecord> all(static_cast<std::size_t>(group.size()));
  RankRecord sent = mine;
  group
      .all_gather(Span(&sent, kBytes, Dtype::u8),
                  Span(all.data(), kBytes * group.size(), Dtype::u8), {.name = "records"})
      .wait();
  return all;
}

nlohmann::ordered_json report_json(const Report& report) {
  Json json;
  add_configuration(json, report);
  json["losses"] = report.history.losses;
  json["grad_norms"] = report.history.grad_norms;
  json["validation"] = validation_json(report.history);
  json["skipped_steps"] = report.history.skipped_steps;
  json["forwards"] = forwards_json(report);
  json["weights_sha256"] = report.weights_sha256;
  add_speed(json, report);
  json["memory"] = memory_json(report);
  json["traffic"] = traffic_json(report);
  json["advice"] = report.advice;
  json["machine"] = {
      {"cpu", machine::cpu_name()}, {"cores", report.cores}, {"threads_per_rank", report.threads}};
  return json;
}

double tokens_per_second(const Report& report) {
  const double step_s = median(report.history.step_ms) / 1e3;
  return step_s > 0 ? static_cast<double>(tokens_per_step(report.options)) / step_s : 0.0;
}

double mfu(const Report& report) {
  const double step_s = median(report.history.step_ms) / 1e3;
  const bool known = step_s > 0 && report.peak_flops > 0;
  return known ? report.flops_per_step / step_s / report.peak_flops : 0.0;
}

nlohmann::ordered_json metrics_line(const StepResult& step, const StepWork& work) {
  const double step_s = step.ms / 1e3;
  return {{"step", step.step},
          {"train/loss", step.loss},
          {"train/lr", step.learning_rate},
          {"train/grad_norm", step.grad_norm},
          {"perf/step_ms", step.ms},
          {"perf/tokens_per_s", static_cast<double>(work.tokens) / step_s},
          {"perf/mfu", work.flops / step_s / work.peak_flops},
          {"comm/exposed_ms", step.exposed_ms},
          {"comm/sent", step.traffic.sent},
          {"comm/received", step.traffic.received},
          {"comm/collectives", step.traffic.collectives},
          {"comm/overlapped", step.overlapped},
          {"forwards", step.forwards},
          {"skipped", step.skipped}};
}

nlohmann::ordered_json memory_tags(const RankRecord& rank) {
  return {{"memory/parameters", rank.held.parameters},
          {"memory/gradients", rank.held.gradients},
          {"memory/optimizer", rank.held.optimizer},
          {"memory/transient_peak", rank.held.transient},
          {"memory/activations_peak", rank.activations_peak()},
          {"memory/pss_at_rest", rank.resident_at_rest()},
          {"memory/pss_peak", rank.resident_peak()}};
}

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string_view name_of(Moment moment) {
  constexpr std::array<std::string_view, kMoments> kNames{"at_rest", "after_forward", "last_hook",
                                                          "after_update"};
  return kNames.at(static_cast<std::size_t>(moment));
}

std::int64_t shared_resident(const Report& report) {
  std::int64_t bytes = 0;
  for (const RankRecord& rank : report.ranks) {
    bytes += rank.shared_at_rest;
  }
  return bytes;
}

std::string_view name_of(PrecisionName precision) {
  return precision == PrecisionName::f32 ? "f32" : "bf16";
}

std::int64_t tokens_per_step(const Options& options) {
  return options.leaves() * options.micro_batch * options.sequence;
}

}  // namespace lockstep::train
