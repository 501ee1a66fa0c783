#include "plan/formulas.h"

#include "base/gradient_window.h"
#include "comm/windowed.h"

#include <algorithm>
#include <bit>

namespace lockstep::plan {
namespace {

constexpr std::int64_t kF32 = 4;

bool is_unit_stage(Stage stage) { return stage == Stage::zero3 || stage == Stage::hybrid; }

std::int64_t partial_sums(const Dials& dials) {
  if (!dials.reproducible || dials.accumulate == 1) {
    return 1;
  }
  return std::bit_width(static_cast<std::uint64_t>(dials.accumulate)) - 1;
}

std::int64_t ranks_on_host(const Dials& dials) {
  return std::min(dials.ranks, dials.ranks_per_host);
}

// Ranks among which a unit is gathered.
std::int64_t unit_group(Stage stage, const Dials& dials) {
  return stage == Stage::hybrid ? dials.shard_size : dials.ranks;
}

bool unit_group_crosses_hosts(Stage stage, const Dials& dials) {
  return unit_group(stage, dials) > dials.ranks_per_host;
}

// Gathers of all units in one step among the whole unit group, and among a host's ranks beside.
struct Gathers {
  std::int64_t in_group = 0;
  std::int64_t on_host = 0;
};

Gathers gathers_per_step(Stage stage, const Dials& dials) {
  if (!gathers(stage, dials)) {
    return {};
  }
  const std::int64_t passes = 2 * dials.accumulate;  // forward and backward of each micro-batch
  switch (dials.reshard) {
    case Reshard::never:
      return {1, 0};
    case Reshard::host:
      if (unit_group_crosses_hosts(stage, dials)) {
        return {1, dials.host_memory == HostMemory::separate ? passes - 1 : 0};
      }
      return {passes, 0};
    case Reshard::always:
      break;
  }
  return {passes, 0};
}

// (parts − 1) shards of `amount`: what a reduce_scatter or an all_gather sends from each rank.
std::int64_t sent_shards(const Amount& amount, const PerElement& size, std::int64_t parts) {
  return (parts - 1) * size.bytes(shard_of(amount, parts));
}

// A bucket or unit is one flat parameter of each type, and travels through windows.
std::int64_t largest_flat(const Amount& amount, const PerElement& size) {
  return std::max(size.bytes({amount.narrow, 0}), size.bytes({0, amount.wide}));
}

std::int64_t gradients_in_flight(Stage stage, const Outline& outline, const Dials& dials,
                                 const Recipe& recipe) {
  if (!reduces_every_micro_batch(stage, dials)) {
    return 0;
  }
  std::int64_t largest = is_unit_stage(stage) ? largest_flat(outline.root, recipe.leaf) : 0;
  if (is_unit_stage(stage)) {
    for (const Amount& unit : outline.units) {
      largest = std::max(largest, largest_flat(unit, recipe.leaf));
    }
  } else {
    for (const Bucket& bucket : outline.buckets) {
      largest = std::max(largest, largest_flat(bucket.amount, recipe.leaf));
    }
  }
  return comm::kWindows * gradient_window_bytes(largest);
}

// Parameters that are readable beyond a rank's own shard.
std::int64_t gathered(Stage stage, const Outline& outline, const Dials& dials,
                      const Recipe& recipe) {
  if (!gathers(stage, dials)) {
    return 0;
  }
  const std::int64_t all = recipe.parameter.bytes(outline.trained);
  if (dials.reshard == Reshard::never) {
    return all - recipe.parameter.bytes(shard_of(outline.trained, unit_group(stage, dials)));
  }
  std::int64_t largest = 0;
  for (const Amount& unit : outline.units) {
    largest = std::max(largest, recipe.parameter.bytes(unit));
  }
  const auto units = static_cast<std::int64_t>(outline.units.size());
  const std::int64_t at_once = std::min(units, 1 + dials.prefetch) * largest;
  const std::int64_t with_root = recipe.parameter.bytes(outline.root) + at_once;
  if (dials.reshard == Reshard::host && unit_group_crosses_hosts(stage, dials)) {
    const std::int64_t copy =
        recipe.parameter.bytes(shard_of(outline.trained, ranks_on_host(dials)));
    return copy + (dials.host_memory == HostMemory::separate ? with_root : 0);
  }
  return with_root;
}

}  // namespace

Recipe recipe_of(Stage stage, const Dials& dials) {
  const bool bf16 = dials.precision == Precision::bf16;
  const std::int64_t narrow = bf16 ? 2 : kF32;
  const std::int64_t held = dials.accumulate > 1 ? kF32 : narrow;
  const std::int64_t sums = partial_sums(dials);
  Recipe recipe;
  recipe.parameter = {narrow, kF32};
  recipe.gradient = {held * sums, kF32 * sums};
  recipe.leaf = {reduces_every_micro_batch(stage, dials) ? narrow : held, kF32};
  recipe.sum = dials.forwards_sums ? PerElement{kF32, kF32} : recipe.leaf;
  recipe.optimizer = {kF32 * dials.optimizer_vectors + (bf16 ? kF32 : 0),
                      kF32 * dials.optimizer_vectors};
  return recipe;
}

Shards shards_of(Stage stage, const Dials& dials) {
  if (stage == Stage::single) {
    return {};
  }
  const bool shared = dials.share_parameters;
  Shards shards;
  shards.parameters = is_unit_stage(stage) ? unit_group(stage, dials)
                      : shared             ? ranks_on_host(dials)
                                           : 1;
  shards.gradients = reduces_every_micro_batch(stage, dials) ? unit_group(stage, dials) : 1;
  shards.optimizer = is_sharded(stage) ? unit_group(stage, dials)
                     : shared          ? ranks_on_host(dials)
                                       : 1;
  return shards;
}

bool reduces_every_micro_batch(Stage stage, const Dials& dials) {
  return shards_gradients(stage) && (dials.accumulate == 1 || dials.accumulate_in_shard);
}

bool gathers(Stage stage, const Dials& dials) {
  if (!is_unit_stage(stage) || unit_group(stage, dials) == 1) {
    return false;
  }
  return dials.host_memory == HostMemory::separate || unit_group_crosses_hosts(stage, dials);
}

Ledger ledger_of(Stage stage, const Outline& outline, const Dials& dials) {
  const Recipe recipe = recipe_of(stage, dials);
  const Shards shards = shards_of(stage, dials);
  Ledger held;
  held.parameters = recipe.parameter.bytes(shard_of(outline.trained, shards.parameters)) +
                    recipe.parameter.bytes(outline.frozen);
  held.gradients = recipe.gradient.bytes(shard_of(outline.trained, shards.gradients));
  held.optimizer = recipe.optimizer.bytes(shard_of(outline.trained, shards.optimizer));
  if (outline.parts_known) {
    held.transient = gradients_in_flight(stage, outline, dials, recipe) +
                     gathered(stage, outline, dials, recipe);
  }
  return held;
}

SentBytes sent_of(Stage stage, const Outline& outline, const Dials& dials) {
  const Recipe recipe = recipe_of(stage, dials);
  const Amount& all = outline.trained;
  const std::int64_t times = reduces_every_micro_batch(stage, dials) ? dials.accumulate : 1;
  SentBytes sent;
  if (stage == Stage::single) {
    return sent;
  }
  const std::int64_t group = unit_group(stage, dials);
  sent.gradients = times * sent_shards(all, recipe.sum, group);
  if (!is_sharded(stage)) {
    sent.gradients += sent_shards(all, recipe.leaf, group);
  } else if (is_unit_stage(stage)) {
    const Gathers gathered = gathers_per_step(stage, dials);
    sent.parameters = gathered.in_group * sent_shards(all, recipe.parameter, group) +
                      gathered.on_host * sent_shards(all, recipe.parameter, ranks_on_host(dials));
  } else if (!dials.share_parameters || dials.hosts() > 1) {
    sent.parameters = sent_shards(all, recipe.parameter, group);
  }
  if (stage == Stage::hybrid) {
    // Each replica's shard holds sums of leaves by now.
    const Amount shard = shard_of(all, group);
    sent.replicas = 2 * sent_shards(shard, {kF32, kF32}, dials.ranks / dials.shard_size);
  }
  return sent;
}

std::int64_t sent_by_host_of(Stage stage, const Outline& outline, const Dials& dials) {
  const std::int64_t hosts = dials.hosts();
  if (hosts == 1 || stage == Stage::single) {
    return 0;
  }
  const Recipe recipe = recipe_of(stage, dials);
  const std::int64_t gradients = sent_shards(outline.trained, recipe.leaf, hosts);
  const std::int64_t parameters = sent_shards(outline.trained, recipe.parameter, hosts);
  const std::int64_t times = reduces_every_micro_batch(stage, dials) ? dials.accumulate : 1;
  if (!is_sharded(stage)) {
    return 2 * gradients;
  }
  if (!is_unit_stage(stage)) {
    return times * gradients + parameters;
  }
  if (!unit_group_crosses_hosts(stage, dials)) {
    return 2 * sent_shards(outline.trained, {kF32, kF32}, hosts);
  }
  return times * gradients + gathers_per_step(stage, dials).in_group * parameters;
}

}  // namespace lockstep::plan
