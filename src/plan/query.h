// One question to the planner and its whole answer: what `lockstep plan` and its page show. Pure:
// models and machines come in as numbers.
#pragma once

#include "lockstep/plan.h"
#include "lockstep/stage.h"
#include "plan/activations.h"
#include "plan/collective_cost.h"
#include "plan/formulas.h"
#include "plan/hardware.h"
#include "plan/outline.h"
#include "plan/timeline.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::plan {

// The stages that are planned, from most memory to least.
inline constexpr std::array kPlannedStages{Stage::single, Stage::ddp,   Stage::zero1,
                                           Stage::zero2,  Stage::zero3, Stage::hybrid};

inline constexpr int kMostRanks = 1'000'000;
inline constexpr std::int64_t kMostParameters = 1'000'000'000'000'000;

struct PlanQuery {
  // The model: its parameters one by one, or their number alone.
  std::string model;                       // its name, for messages; empty for a number
  std::vector<Member> members;             // in registration order; empty for a number
  std::optional<Transformer> transformer;  // without it activations are not known
  std::int64_t parameters = 0;             // with members: their sum
  std::int64_t blocks = 0;                 // of a number: equal blocks; 0: not known

  int ranks = 1;
  int hosts = 0;       // 0: as many as the hardware needs for the ranks
  int shard_size = 0;  // hybrid; 0: the largest divisor of ranks that one host holds
  Hardware hardware;
  std::int64_t device_memory = 0;  // bytes of one rank; 0: the hardware's

  Precision precision = Precision::bf16;
  int optimizer_vectors = 2;
  std::int64_t frozen_ppm = 0;  // millionths of every parameter that are not trained
  std::int64_t micro_batch = 1;
  std::int64_t sequence = 2048;
  std::int64_t accumulate = 1;
  bool accumulate_in_shard = true;
  bool reproducible = false;
  bool share_parameters = false;  // needs a host with one memory
  double bucket_mb = 25;
  std::int64_t unit_blocks = 1;
  std::int64_t prefetch = 1;
  Reshard reshard = Reshard::always;
  bool overlap = true;
  bool recompute = false;
  bool flash_attention = true;
  std::optional<Algorithm> algorithm;  // of gradients; nothing: automatic
  double slowest = 1;                  // how much longer one rank computes

  bool curves = false;            // fill PlanAnswer::curves
  std::optional<Stage> timeline;  // fill PlanAnswer::timeline for this stage
};

// Throws UsageError: one line, naming the option of `lockstep plan`, what was expected and got.
void check(const PlanQuery& query);

struct StageAnswer {
  Stage stage = Stage::ddp;
  Ledger bytes;
  std::int64_t activations = 0;
  std::int64_t total_bytes = 0;   // with activations
  bool fits = false;              // total_bytes ≤ device memory
  SentBytes sent;                 // by one rank in one step
  std::int64_t sent_by_host = 0;  // at least, in one step; 0 on one host
  double floor_ms = 0;  // what must be sent over the link that takes longest: no overlap beats it
  // Nothing where the asked algorithm can't add up what the stage adds up.
  std::optional<StepTime> time;
  double tokens_per_s = 0;
  double efficiency = 0;  // of the tokens per second that the ranks would reach apart

  std::optional<std::int64_t> smallest_ranks;       // that fit, at this many per host
  std::optional<std::int64_t> largest_micro_batch;  // that fits; needs activations
  std::optional<std::int64_t> largest_parameters;   // whose state alone fits
};

// One stage over numbers of ranks.
struct CurvePoint {
  int ranks = 1;
  std::int64_t total_bytes = 0;
  std::int64_t sent = 0;
  double floor_ms = 0;
  std::optional<double> step_ms;
  double exposed_ms = 0;
  double tokens_per_s = 0;
  double efficiency = 0;
};
struct Curve {
  Stage stage = Stage::ddp;
  std::vector<CurvePoint> points;
};

struct PlanAnswer {
  std::int64_t parameters = 0;
  int ranks = 1;
  Amount trained;
  Amount frozen;
  Dials dials;  // the query's dials with what it left open filled in
  std::int64_t device_memory = 0;
  Activations activations;
  bool parts_known = false;          // else transient and units are not counted, activations are 0
  std::int64_t tokens_per_step = 0;  // of all ranks
  double operations_per_step = 0;    // of one rank
  std::vector<StageAnswer> stages;   // in the order of kPlannedStages
  std::optional<Stage> smallest_stage;  // the first that fits; single only of one rank
  std::optional<Stage> advised;         // nothing: not data parallelism, or more ranks
  // What to do and why, then what data parallelism does not buy, then dials that are set wrong.
  std::vector<std::string> advice;
  std::vector<Curve> curves;   // P = 1, 2, 4, … up to 65,536 and the asked one
  std::vector<Span> timeline;  // spans of an ordinary rank in the asked stage

  const StageAnswer& of(Stage stage) const;
};

// Takes well under a millisecond per stage and rank count.
PlanAnswer answer(const PlanQuery& query);

}  // namespace lockstep::plan
