#include "plan/stage_advice.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::plan {
namespace {

// Memory that allocators and kernels want beside what is counted.
constexpr std::int64_t kComfortPercent = 80;
constexpr double kNotable = 0.10;

template <class... Values>
std::string text(const char* pattern, Values... values) {
  std::vector<char> buffer(static_cast<std::size_t>(std::snprintf(nullptr, 0, pattern, values...)) +
                           1);
  std::snprintf(buffer.data(), buffer.size(), pattern, values...);
  return buffer.data();
}

std::string name(Stage stage) { return std::string(name_of(stage)); }

std::string gigabytes(std::int64_t bytes) {
  return text("%.4g GB", static_cast<double>(bytes) / 1e9);
}

bool comfortable(const StageAnswer& stage, const PlanAnswer& answer) {
  return stage.total_bytes <= answer.device_memory / 100 * kComfortPercent;
}

// What zero3 can't divide however many ranks there are: the unit that computes, its gradient in
// flight, and one sequence's activations of a block.
std::int64_t indivisible(const PlanQuery& query, const Outline& outline, const PlanAnswer& answer) {
  if (!answer.parts_known) {
    return 0;
  }
  Dials far = answer.dials;
  far.ranks = kMostRanks;
  const Ledger held = ledger_of(Stage::zero3, outline, far);
  const std::int64_t activations =
      query.transformer ? answer.activations.peak / answer.dials.micro_batch : 0;
  return held.transient + activations +
         recipe_of(Stage::zero3, far).parameter.bytes(outline.frozen);
}

std::string not_data_parallel(const PlanQuery& query, const Outline& outline,
                              const PlanAnswer& answer) {
  const std::int64_t bytes = indivisible(query, outline, answer);
  if (bytes <= answer.device_memory) {
    return {};
  }
  return "a single unit does not fit: gathered, with its gradient and one sequence's activations "
         "it needs " +
         gigabytes(bytes) + " of " + gigabytes(answer.device_memory) +
         " on any number of ranks: not data parallelism: tensor or pipeline parallelism";
}

std::string more_ranks(const PlanAnswer& answer) {
  const StageAnswer& zero3 = answer.of(Stage::zero3);
  const std::string ranks = std::to_string(answer.ranks) + (answer.ranks == 1 ? " rank" : " ranks");
  const std::string needs = "no stage fits on " + ranks + ": zero3 needs " +
                            gigabytes(zero3.total_bytes) + " of " + gigabytes(answer.device_memory);
  if (zero3.smallest_ranks) {
    return needs + "; it fits from " + std::to_string(*zero3.smallest_ranks) + " ranks on";
  }
  return needs +
         ", and no number of ranks is enough: lower --micro-batch or --seq, or use --recompute";
}

std::string on_replicas(Stage stage, const PlanAnswer& answer) {
  const StageAnswer& chosen = answer.of(stage);
  return "use " + name(stage) + ": the model's state fits comfortably (" +
         gigabytes(chosen.total_bytes) + " of " + gigabytes(answer.device_memory) +
         "), it moves what ddp moves and needs " +
         gigabytes(answer.of(Stage::ddp).total_bytes - chosen.total_bytes) + " less per rank";
}

std::string on_shards(Stage stage, const PlanAnswer& answer) {
  const std::string why =
      "use " + name(stage) + ": " +
      (answer.of(Stage::zero2).fits ? "zero2 fits, but not comfortably ("
                                    : "whole parameters on every rank do not fit (zero2: ") +
      gigabytes(answer.of(Stage::zero2).total_bytes) + " of " + gigabytes(answer.device_memory) +
      "), ";
  if (stage == Stage::hybrid) {
    return why + "a host holds a replica, and only shards of gradients cross between hosts (" +
           gigabytes(answer.of(stage).sent_by_host) + " a step and host; zero3 " +
           gigabytes(answer.of(Stage::zero3).sent_by_host) + ")";
  }
  return why + "shards do (" + gigabytes(answer.of(stage).total_bytes) +
         "); keep --prefetch at 1 or more and one block per unit";
}

void choose(const PlanQuery& query, const Outline& outline, PlanAnswer& answer) {
  if (answer.ranks == 1) {
    const bool fits = answer.of(Stage::single).fits;
    answer.advised = fits ? std::optional(Stage::single) : std::nullopt;
    answer.advice.push_back(fits ? "use single: one rank has nobody to share with"
                                 : more_ranks(answer));
    return;
  }
  for (const Stage stage : {Stage::zero1, Stage::zero2}) {
    if (comfortable(answer.of(stage), answer)) {
      answer.advised = stage;
      answer.advice.push_back(on_replicas(stage, answer));
      return;
    }
  }
  const bool several_hosts = answer.dials.hosts() > 1;
  for (const Stage stage : {Stage::hybrid, Stage::zero3}) {
    if (answer.of(stage).fits && (stage == Stage::zero3 || several_hosts)) {
      answer.advised = stage;
      answer.advice.push_back(on_shards(stage, answer));
      return;
    }
  }
  const std::string impossible = not_data_parallel(query, outline, answer);
  answer.advice.push_back(impossible.empty() ? more_ranks(answer) : impossible);
}

// What no stage and no overlap gets below.
void add_limits(const PlanQuery& query, PlanAnswer& answer) {
  if (answer.ranks == 1) {
    return;
  }
  const StageAnswer& stage = answer.of(answer.advised.value_or(Stage::zero3));
  answer.advice.push_back(
      "a step of " + name(stage.stage) + " takes at least " + text("%.3g ms", stage.floor_ms) +
      " however little is computed: its traffic over " + query.hardware.name + "'s links");
  answer.advice.push_back(
      "the global batch grows with the ranks: " + std::to_string(answer.tokens_per_step) +
      " tokens in a step of " + std::to_string(answer.ranks));
}

void add_dials(const PlanQuery& query, PlanAnswer& answer) {
  if (!answer.advised || !answer.of(*answer.advised).time) {
    return;
  }
  const StageAnswer& stage = answer.of(*answer.advised);
  const double share = stage.time->exposed_s / stage.time->step_s;
  if (answer.ranks == 1 || share < kNotable) {
    return;
  }
  const std::string seen = text("%.0f %% of the step is exposed", share * 100);
  const bool by_unit = stage.stage == Stage::zero3 || stage.stage == Stage::hybrid;
  if (!query.overlap) {
    answer.advice.push_back(seen + " and overlap is off: leave --overlap on");
  } else if (by_unit && query.prefetch == 0) {
    answer.advice.push_back(seen + " and prefetch is off: use --prefetch 1");
  } else if (query.slowest > 1 + kNotable) {
    answer.advice.push_back(seen + text(": the others wait for a rank that computes %.3g times as "
                                        "long; find out what slows it",
                                        query.slowest));
  } else {
    answer.advice.push_back(seen +
                            ": a larger --micro-batch or --accumulate computes more for "
                            "each byte sent");
  }
}

}  // namespace

void advise(const PlanQuery& query, const Outline& outline, PlanAnswer& answer) {
  choose(query, outline, answer);
  add_limits(query, answer);
  add_dials(query, answer);
}

}  // namespace lockstep::plan
