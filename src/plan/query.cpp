#include "plan/query.h"

#include "base/invariant.h"
#include "base/range.h"
#include "lockstep/error.h"
#include "plan/schedule.h"
#include "plan/stage_advice.h"

#include <algorithm>
#include <string>

namespace lockstep::plan {
namespace {

constexpr int kMostCurveRanks = 65'536;

std::int64_t tokens_of(const Dials& dials) { return dials.micro_batch * dials.sequence; }

int largest_divisor(int n, int most) {
  int divisor = std::min(n, most);
  while (n % divisor != 0) {
    --divisor;
  }
  return divisor;
}

int ranks_per_host(const PlanQuery& query) {
  return query.hosts > 0 ? (query.ranks + query.hosts - 1) / query.hosts
                         : query.hardware.ranks_per_host;
}

Dials dials_of(const PlanQuery& query, int ranks) {
  Dials dials;
  dials.ranks = ranks;
  dials.ranks_per_host = ranks_per_host(query);
  dials.shard_size =
      query.shard_size > 0 ? query.shard_size : largest_divisor(ranks, dials.ranks_per_host);
  dials.host_memory = query.hardware.host_memory;
  dials.precision = query.precision;
  dials.optimizer_vectors = query.optimizer_vectors;
  dials.reproducible = query.reproducible;
  dials.share_parameters = query.share_parameters;
  dials.micro_batch = query.micro_batch;
  dials.sequence = query.sequence;
  dials.accumulate = query.accumulate;
  dials.accumulate_in_shard = query.accumulate_in_shard;
  dials.unit_blocks = query.unit_blocks;
  dials.prefetch = query.prefetch;
  dials.reshard = query.reshard;
  dials.overlap = query.overlap;
  dials.recompute = query.recompute;
  dials.flash_attention = query.flash_attention;
  dials.forwards_sums = query.algorithm && forwards_sums(*query.algorithm);
  return dials;
}

OutlineOptions outline_options(const PlanQuery& query) {
  return {.bucket_mb = query.bucket_mb,
          .unit_blocks = query.unit_blocks,
          .precision = query.precision,
          .frozen_ppm = query.frozen_ppm};
}

Outline outline_of(const PlanQuery& query) {
  return query.members.empty() ? outline_of(query.parameters, query.blocks, outline_options(query))
                               : outline_of(query.members, outline_options(query));
}

// A model of which nothing but its size is known: what its state alone needs.
Outline bare_outline(const PlanQuery& query, std::int64_t parameters) {
  OutlineOptions options = outline_options(query);
  options.bucket_mb = 1e9;
  return outline_of(parameters, 0, options);
}

// The smallest of [low, high] for which `holds`, which stays true once it is; nothing if none.
template <class Integer, class Holds>
std::optional<Integer> first_that(Integer low, Integer high, const Holds& holds) {
  if (low > high || !holds(high)) {
    return std::nullopt;
  }
  while (low < high) {
    const Integer middle = low + (high - low) / 2;
    holds(middle) ? high = middle : low = middle + 1;
  }
  return low;
}

class Planner {
 public:
  explicit Planner(const PlanQuery& query)
      : query_(query),
        outline_(outline_of(query)),
        dials_(dials_of(query, query.ranks)),
        memory_(query.device_memory > 0 ? query.device_memory : query.hardware.memory_bytes) {
    if (query.transformer) {
      activations_ = activations_of(*query.transformer, dials_);
    }
  }

  PlanAnswer answer() const {
    PlanAnswer result;
    result.parameters = parameters();
    result.ranks = query_.ranks;
    result.trained = outline_.trained;
    result.frozen = outline_.frozen;
    result.dials = dials_;
    result.device_memory = memory_;
    result.activations = activations_;
    result.parts_known = outline_.parts_known;
    result.tokens_per_step = dials_.accumulate * tokens_of(dials_) * dials_.ranks;
    result.operations_per_step = operations_per_step(result.parameters);
    for (const Stage stage : kPlannedStages) {
      result.stages.push_back(stage_answer(stage));
      const bool counts = stage != Stage::single || query_.ranks == 1;
      if (counts && result.stages.back().fits && !result.smallest_stage) {
        result.smallest_stage = stage;
      }
    }
    if (query_.curves) {
      for (const Stage stage : kPlannedStages) {
        result.curves.push_back(curve_of(stage));
      }
    }
    if (query_.timeline) {
      if (auto time = time_of(*query_.timeline, dials_, true)) {
        result.timeline = std::move(time->spans);
      }
    }
    advise(query_, outline_, result);
    return result;
  }

 private:
  double operations_per_step(std::int64_t parameters) const {
    const Operations operations = operations_of(dials_);
    const double forward = 2 * static_cast<double>(parameters) * operations.per_element_token +
                           operations.attention_of_block * static_cast<double>(outline_.blocks);
    return 3 * forward * static_cast<double>(dials_.accumulate);
  }

  // Forward: 2 N and 4 L C T per token (Chowdhery et al. 2022, PaLM, appendix B).
  Operations operations_of(const Dials& dials) const {
    const auto tokens = static_cast<double>(tokens_of(dials));
    if (!query_.transformer) {
      return {tokens, 0};
    }
    const Transformer& model = *query_.transformer;
    return {tokens,
            4 * static_cast<double>(model.heads * model.head_size * dials.sequence) * tokens};
  }

  Ledger ledger(Stage stage, const Dials& dials) const { return ledger_of(stage, outline_, dials); }

  bool fits(Stage stage, int ranks) const {
    return ledger(stage, dials_of(query_, ranks)).total() + activations_.peak <= memory_;
  }

  std::optional<StepTime> time_of(Stage stage, const Dials& dials, bool spans) const {
    const Job job{.stage = stage,
                  .outline = outline_,
                  .dials = dials,
                  .hardware = query_.hardware,
                  .operations = operations_of(dials),
                  .algorithm = query_.algorithm};
    if (!is_possible(job)) {
      return std::nullopt;
    }
    const bool alone = stage == Stage::single || dials.ranks == 1;
    return simulate(schedule_of(job), {query_.slowest, alone, spans});
  }

  double floor_ms(Stage stage, const Dials& dials) const {
    const SentBytes sent = sent_of(stage, outline_, dials);
    const std::int64_t near = dials.hosts() == 1 ? sent.total() : sent.total() - sent.replicas;
    const double inside = static_cast<double>(near) / query_.hardware.inside.bytes_per_s;
    if (dials.hosts() == 1 || stage == Stage::single) {
      return inside * 1e3;
    }
    const double between = static_cast<double>(sent_by_host_of(stage, outline_, dials)) /
                           query_.hardware.between.bytes_per_s;
    return (stage == Stage::hybrid ? std::max(inside, between) : between) * 1e3;
  }

  // What ranks that train alone and never wait would reach, per rank.
  double apart_s(const Dials& dials) const {
    const Job job{.stage = Stage::single,
                  .outline = outline_,
                  .dials = dials,
                  .hardware = query_.hardware,
                  .operations = operations_of(dials)};
    return simulate(schedule_of(job), {}).step_s;
  }

  StageAnswer stage_answer(Stage stage) const {
    StageAnswer one;
    one.stage = stage;
    one.bytes = ledger(stage, dials_);
    one.activations = activations_.peak;
    one.total_bytes = one.bytes.total() + one.activations;
    one.fits = one.total_bytes <= memory_;
    one.sent = sent_of(stage, outline_, dials_);
    one.sent_by_host = sent_by_host_of(stage, outline_, dials_);
    one.floor_ms = floor_ms(stage, dials_);
    one.time = time_of(stage, dials_, false);
    if (one.time) {
      const int ranks = stage == Stage::single ? 1 : dials_.ranks;
      one.tokens_per_s =
          static_cast<double>(dials_.accumulate * tokens_of(dials_) * ranks) / one.time->step_s;
      one.efficiency = apart_s(dials_) / one.time->step_s;
    }
    one.smallest_ranks = smallest_ranks(stage);
    if (activations_.peak > 0) {
      const std::int64_t of_one = activations_.peak / dials_.micro_batch;
      one.largest_micro_batch = std::max<std::int64_t>(0, (memory_ - one.bytes.total()) / of_one);
    }
    one.largest_parameters = largest_parameters(stage);
    return one;
  }

  // Fewer bytes with more ranks, but for two jumps: units are gathered from 2 ranks on, and on
  // hosts with one memory from two hosts on.
  std::optional<std::int64_t> smallest_ranks(Stage stage) const {
    const auto holds = [&](std::int64_t ranks) { return fits(stage, static_cast<int>(ranks)); };
    if (stage == Stage::hybrid && query_.shard_size > 0) {
      return holds(query_.shard_size) ? std::optional<std::int64_t>(query_.shard_size)
                                      : std::nullopt;
    }
    if (holds(1)) {
      return 1;
    }
    if (stage == Stage::single) {
      return std::nullopt;
    }
    const std::int64_t near = dials_.ranks_per_host;
    if (const auto found = first_that<std::int64_t>(2, near, holds)) {
      return found;
    }
    if (stage == Stage::hybrid) {  // a replica lives on one host
      return std::nullopt;
    }
    return first_that<std::int64_t>(near + 1, kMostRanks, holds);
  }

  std::optional<std::int64_t> largest_parameters(Stage stage) const {
    const auto too_many = [&](std::int64_t parameters) {
      return ledger_of(stage, bare_outline(query_, parameters), dials_).total() > memory_;
    };
    const auto first = first_that<std::int64_t>(1, kMostParameters, too_many);
    return first && *first > 1 ? std::optional(*first - 1) : std::nullopt;
  }

  Curve curve_of(Stage stage) const {
    Curve curve{stage, {}};
    std::vector<int> ranks{query_.ranks};
    for (int p = 1; p <= kMostCurveRanks; p *= 2) {
      ranks.push_back(p);
    }
    std::ranges::sort(ranks);
    ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
    for (const int p : ranks) {
      const bool divides =
          stage != Stage::hybrid || query_.shard_size == 0 || p % query_.shard_size == 0;
      if (p <= parameters() && divides && (stage != Stage::single || p == 1)) {
        curve.points.push_back(point_of(stage, p));
      }
    }
    return curve;
  }

  std::int64_t parameters() const {
    return outline_.trained.elements() + outline_.frozen.elements();
  }

  CurvePoint point_of(Stage stage, int ranks) const {
    const Dials dials = dials_of(query_, ranks);
    CurvePoint point;
    point.ranks = ranks;
    point.total_bytes = ledger(stage, dials).total() + activations_.peak;
    point.sent = sent_of(stage, outline_, dials).total();
    point.floor_ms = floor_ms(stage, dials);
    if (const auto time = time_of(stage, dials, false)) {
      point.step_ms = time->step_s * 1e3;
      point.exposed_ms = time->exposed_s * 1e3;
      point.tokens_per_s =
          static_cast<double>(dials.accumulate * tokens_of(dials) * ranks) / time->step_s;
      point.efficiency = apart_s(dials) / time->step_s;
    }
    return point;
  }

  const PlanQuery& query_;
  const Outline outline_;
  const Dials dials_;
  const std::int64_t memory_;
  Activations activations_;
};

[[noreturn]] void refuse(const std::string& option, const std::string& expected, std::int64_t got) {
  throw UsageError(option + ": expected " + expected + ", got " + std::to_string(got));
}

std::int64_t parameters_of(const PlanQuery& query) {
  std::int64_t all = query.members.empty() ? query.parameters : 0;
  for (const Member& member : query.members) {
    all += member.elements;
  }
  return all;
}

void check_model(const PlanQuery& query) {
  const std::int64_t parameters = parameters_of(query);
  if (parameters < 1 || parameters > kMostParameters) {
    refuse(query.members.empty() ? "--params" : "--model", "from 1 to 1e15 parameters", parameters);
  }
  if (query.ranks < 1 || query.ranks > kMostRanks) {
    refuse("--ranks", "a whole number from 1 to " + std::to_string(kMostRanks), query.ranks);
  }
  if (query.ranks > parameters) {
    refuse("--ranks", "at most one rank per parameter, " + std::to_string(parameters), query.ranks);
  }
  if (query.blocks < 0 || query.blocks > parameters) {
    refuse("--blocks", "from 1 block to one per parameter", query.blocks);
  }
  if (query.frozen_ppm < 0 || query.frozen_ppm >= 1'000'000) {
    throw UsageError("--frozen: expected a share from 0 to below 1 (nothing is left to train)");
  }
}

void check_ranks(const PlanQuery& query) {
  if (query.hosts < 0 || query.hosts > query.ranks ||
      (query.hosts > 0 && query.ranks % query.hosts != 0)) {
    refuse("--hosts", "a divisor of --ranks " + std::to_string(query.ranks), query.hosts);
  }
  if (query.shard_size < 0 || query.shard_size > query.ranks ||
      (query.shard_size > 0 && query.ranks % query.shard_size != 0)) {
    refuse("--shard-size", "a divisor of --ranks " + std::to_string(query.ranks), query.shard_size);
  }
  if (query.share_parameters && query.hardware.host_memory == HostMemory::separate) {
    throw UsageError("--share-parameters: ranks on " + query.hardware.name +
                     " have a memory each; use --stage zero3, or --hardware of a CPU");
  }
}

void check_steps(const PlanQuery& query) {
  if (query.micro_batch < 1 || query.sequence < 1 ||
      query.sequence > 1'000'000'000 / query.micro_batch) {
    throw UsageError("--micro-batch, --seq: expected at least 1 each and at most 1e9 tokens, got " +
                     std::to_string(query.micro_batch) + " and " + std::to_string(query.sequence));
  }
  if (query.accumulate < 1 || query.accumulate > 1024) {
    refuse("--accumulate", "a whole number from 1 to 1024", query.accumulate);
  }
  if (query.reproducible && !(is_power_of_two(query.ranks) && is_power_of_two(query.accumulate))) {
    throw UsageError("--reproducible: expected powers of two for --ranks and --accumulate, got " +
                     std::to_string(query.ranks) + " and " + std::to_string(query.accumulate));
  }
  if (!(query.slowest >= 1) || query.slowest > 1e6) {
    throw UsageError("--slowest: expected a factor from 1 to 1e6");
  }
  if (!(query.bucket_mb >= 0) || query.bucket_mb > 1e9) {
    throw UsageError("--bucket-mb: expected from 0 to 1e9 MB");
  }
}

}  // namespace

void check(const PlanQuery& query) {
  check_model(query);
  check_ranks(query);
  check_steps(query);
  if (query.unit_blocks < 1) {
    refuse("--unit-blocks", "at least 1", query.unit_blocks);
  }
  if (query.prefetch < 0) {
    refuse("--prefetch", "at least 0", query.prefetch);
  }
  if (query.transformer && query.transformer->context > 0 &&
      query.sequence > query.transformer->context) {
    refuse(
        "--seq",
        "at most " + std::to_string(query.transformer->context) + ", the context of " + query.model,
        query.sequence);
  }
}

const StageAnswer& PlanAnswer::of(Stage stage) const {
  const auto found = std::ranges::find(stages, stage, &StageAnswer::stage);
  LOCKSTEP_INVARIANT((found != stages.end()), ==, true);
  return *found;
}

PlanAnswer answer(const PlanQuery& query) {
  check(query);
  return Planner(query).answer();
}

}  // namespace lockstep::plan
