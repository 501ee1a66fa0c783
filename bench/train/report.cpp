#include "bench/train/report.h"

#include "bench/common/machine.h"
#include "bench/common/svg_plot.h"
#include "bench/common/table.h"

#include <algorithm>
#include <numeric>

namespace lockstep::bench {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::vector<const Launch*> launches_of(const Session& session, const std::string& mode) {
  std::vector<const Launch*> launches;
  for (const Launch& launch : session.launches) {
    if (launch.mode.name == mode) {
      launches.push_back(&launch);
    }
  }
  return launches;
}

template <class Value>
Spread spread_over(const std::vector<const Launch*>& launches, Value value) {
  std::vector<double> values;
  for (const Launch* launch : launches) {
    values.push_back(value(*launch));
  }
  return spread_of(std::move(values));
}

Summary summary_of(const Session& session, const std::string& mode) {
  const std::vector<const Launch*> launches = launches_of(session, mode);
  const auto median = [&](auto value) { return spread_over(launches, value).median; };
  Summary summary;
  summary.mode = mode;
  summary.step_ms = spread_over(launches, [](const Launch& one) { return one.step_ms.median; });
  summary.tokens_per_s = median([](const Launch& one) { return one.tokens_per_s; });
  summary.forward_ms = median([](const Launch& one) { return one.forward_ms; });
  summary.backward_ms = median([](const Launch& one) { return one.backward_ms; });
  summary.update_ms = median([](const Launch& one) { return one.update_ms; });
  if (launches.front()->exposed_comm_ms) {
    summary.exposed_comm_ms = median([](const Launch& one) { return *one.exposed_comm_ms; });
  }
  summary.resident_bytes = (*std::ranges::max_element(launches, {}, [](const Launch* one) {
                             return sum_of(one->resident_bytes);
                           }))->resident_bytes;
  for (const Comparison& comparison : session.comparisons) {
    if (comparison.mode == mode && comparison.yardstick == "apart") {
      summary.ratio_to_apart = comparison.ratio;
    }
  }
  return summary;
}

std::string megabytes(const std::vector<std::int64_t>& bytes) {
  std::string text;
  for (const std::int64_t one : bytes) {
    text += (text.empty() ? "" : " ") + fixed(static_cast<double>(one) / 1e6, 0);
  }
  return text;
}

std::string range_text(const Spread& spread, int digits) {
  return fixed(spread.least, digits) + "-" + fixed(spread.most, digits);
}

std::vector<std::string> row_of(const Summary& summary) {
  const auto& exposed = summary.exposed_comm_ms;
  const auto& ratio = summary.ratio_to_apart;
  return {summary.mode,
          fixed(summary.step_ms.median, 1),
          range_text(summary.step_ms, 1),
          fixed(summary.tokens_per_s, 0),
          fixed(summary.forward_ms, 1),
          fixed(summary.backward_ms, 1),
          fixed(summary.update_ms, 1),
          exposed ? fixed(*exposed, 1) : "",
          megabytes(summary.resident_bytes),
          ratio ? fixed(ratio->median, 3) : "",
          ratio ? range_text(*ratio, 3) : ""};
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.least}, {"max", spread.most}};
}

template <class Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json launch_json(const Launch& launch) {
  return {{"mode", launch.mode.name},
          {"stage", launch.mode.stage},
          {"bucket_mb", json_or_null(launch.mode.dials.bucket_mb)},
          {"unit_blocks", json_or_null(launch.mode.dials.unit_blocks)},
          {"overlap", json_or_null(launch.mode.dials.overlap)},
          {"round", launch.round},
          {"step_ms", spread_json(launch.step_ms)},
          {"forward_ms", launch.forward_ms},
          {"backward_ms", launch.backward_ms},
          {"update_ms", launch.update_ms},
          {"exposed_comm_ms", json_or_null(launch.exposed_comm_ms)},
          {"collectives", json_or_null(launch.collectives)},
          {"tokens_per_s", launch.tokens_per_s},
          {"losses", launch.losses},
          {"mean_losses", launch.mean_losses},
          {"resident_bytes", launch.resident_bytes},
          {"weights_sha256", launch.weights_sha256}};
}

Json summary_json(const Summary& summary) {
  const auto& ratio = summary.ratio_to_apart;
  return {{"mode", summary.mode},
          {"step_ms", spread_json(summary.step_ms)},
          {"tokens_per_s", summary.tokens_per_s},
          {"exposed_comm_ms", json_or_null(summary.exposed_comm_ms)},
          {"resident_bytes", summary.resident_bytes},
          {"ratio_to_apart", ratio ? spread_json(*ratio) : Json()}};
}

}  // namespace

std::vector<Summary> summaries_of(const Session& session) {
  std::vector<Summary> summaries;
  for (const Launch& launch : session.launches) {
    if (launch.round == 0) {
      summaries.push_back(summary_of(session, launch.mode.name));
    }
  }
  return summaries;
}

std::string text_of(const LeftOut& one) {
  return one.mode.name + " is left out: " + one.reason + "\n";
}

std::string text_of(const Session& session, const std::vector<LeftOut>& left_out) {
  std::vector<std::vector<std::string>> rows{{"mode", "step ms", "least-most", "tokens/s",
                                              "forward", "backward", "update", "exposed",
                                              "resident MB", "x apart", "least-most"}};
  for (const Summary& summary : summaries_of(session)) {
    rows.push_back(row_of(summary));
  }
  std::string text = table(rows);
  for (const Comparison& comparison : session.comparisons) {
    if (comparison.yardstick != "apart") {
      text += comparison.mode + " takes " + fixed(comparison.ratio.median, 3) + " x " +
              comparison.yardstick + " (" + range_text(comparison.ratio, 3) + ")\n";
    }
  }
  for (const LeftOut& one : left_out) {
    text += text_of(one);
  }
  return text;
}

nlohmann::ordered_json json_of(const TrainQuestion& question, const Session& session,
                               const std::vector<LeftOut>& left_out) {
  Json json{{"version", LOCKSTEP_VERSION},     {"machine", describe(this_machine())},
            {"model", question.model},         {"parameters", session.launches.front().parameters},
            {"ranks", question.ranks},         {"threads", question.threads},
            {"precision", question.precision}, {"micro_batch", question.micro_batch},
            {"sequence", question.sequence},   {"steps", question.steps},
            {"modes", Json::array()},          {"launches", Json::array()},
            {"comparisons", Json::array()},    {"left_out", Json::array()}};
  for (const Summary& summary : summaries_of(session)) {
    json["modes"].push_back(summary_json(summary));
  }
  for (const Launch& launch : session.launches) {
    json["launches"].push_back(launch_json(launch));
  }
  for (const Comparison& comparison : session.comparisons) {
    json["comparisons"].push_back({{"mode", comparison.mode},
                                   {"yardstick", comparison.yardstick},
                                   {"ratio", spread_json(comparison.ratio)}});
  }
  for (const LeftOut& one : left_out) {
    json["left_out"].push_back({{"mode", one.mode.name}, {"reason", one.reason}});
  }
  return json;
}

std::string plot_of(const TrainQuestion& question, const Session& session) {
  BarPlot plot{.title = title(question) + " per rank, " + std::to_string(question.ranks) +
                        " ranks x " + std::to_string(question.threads) + " threads",
               .value_title = "ms per step: median over the rounds (least to most)",
               .bars = {}};
  for (const Summary& summary : summaries_of(session)) {
    plot.bars.push_back({summary.mode, summary.step_ms});
    if (summary.mode == "apart") {
      plot.mark = Mark{"apart", summary.step_ms.median};
    }
  }
  return svg_of(plot);
}

}  // namespace lockstep::bench
