// What a run was and did, and its form as report.json (design: "Command line").
#pragma once

#include "lockstep/group.h"
#include "lockstep/plan.h"
#include "train/memory.h"
#include "train/options.h"
#include "train/prediction.h"
#include "train/trainer.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

struct ValidationPoint {
  std::int64_t step = 0;  // steps done when it was measured
  double loss = 0;        // nats per token
};

// One rank's counts; trivially copyable, so that ranks can exchange it as it is.
struct RankRecord {
  plan::Ledger held = {};
  MemoryPhases phases{};
  std::int64_t baseline = 0;
  std::int64_t shared_at_rest = 0;  // resident in shared memory, baseline and all
  std::int64_t sent = 0;            // traffic of all steps
  std::int64_t received = 0;
  std::int64_t collectives = 0;
  std::int64_t forwards = 0;    // training forwards of all steps
  std::int64_t exposed_us = 0;  // median per step

  const MemorySample& at(Moment moment) const { return phases[static_cast<std::size_t>(moment)]; }
  // Of the phases, at their moments; the latter less the baseline.
  std::int64_t activations_peak() const;
  std::int64_t resident_at_rest() const;
  std::int64_t resident_peak() const;
};

// Collective: every rank's record, in rank order.
std::vector<RankRecord> gather_records(Group& group, const RankRecord& mine);

// What happened at each step, as every rank knows it.
struct History {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  std::vector<double> step_ms;     // without the first step and the one that sampled memory,
  std::vector<double> exposed_ms;  // when there are others
  std::vector<ValidationPoint> validation;
  std::int64_t skipped_steps = 0;
};

struct Report {
  std::string command;
  Options options;
  int threads = 1;
  int cores = 1;  // that all ranks together may use
  std::int64_t parameters = 0;
  double flops_per_step = 0;  // of all ranks
  double peak_flops = 0;      // per second, of all ranks
  History history;
  std::int64_t first_step = 0;  // done before this run, which the history does not tell of
  std::string weights_sha256;
  std::vector<RankRecord> ranks;
  std::int64_t shared_allocated = 0;  // for the shared memory of all ranks, when it was at rest
  Prediction predicted;
  std::vector<std::string> advice;
};

// Of the median step; 0 when there is none.
double tokens_per_second(const Report& report);
// Model FLOPs utilisation: the model's operations in a step against what matrix products of all
// ranks reach in that time; 0 when unknown.
double mfu(const Report& report);

// What a phase is called.
std::string_view name_of(Moment moment);

// Numbers keep round-trip digits; what is not finite becomes null.
nlohmann::ordered_json report_json(const Report& report);

// What every step of a run comes to, over all ranks.
struct StepWork {
  std::int64_t tokens = 0;
  double flops = 0;
  double peak_flops = 0;  // per second
};

// One step as a line of metrics.jsonl.
nlohmann::ordered_json metrics_line(const StepResult& step, const StepWork& work);
// What a rank holds, as members of such a line.
nlohmann::ordered_json memory_tags(const RankRecord& rank);

// The middle value (the mean of two); 0 when there is none.
double median(std::vector<double> values);

// Resident in shared memory, over all ranks: what each has of a page adds up to the page.
std::int64_t shared_resident(const Report& report);

// Of all ranks.
std::int64_t tokens_per_step(const Options& options);

std::string_view name_of(PrecisionName precision);

}  // namespace lockstep::train
