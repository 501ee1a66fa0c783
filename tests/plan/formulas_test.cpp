// The formulas against plan.h's ledger and traffic, which count every padded element, and against
// the figures of the papers.
#include "plan/formulas.h"

#include "plan/flat_buckets.h"
#include "plan/queries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace lockstep::plan {
namespace {

// As the engine holds them: on one host, whose memory is one.
Dials engine_dials(Precision precision, int ranks) {
  Dials dials;
  dials.ranks = ranks;
  dials.ranks_per_host = ranks;
  dials.shard_size = ranks;
  dials.host_memory = HostMemory::shared;
  dials.precision = precision;
  return dials;
}

std::vector<Parameter> parameters_of(const std::vector<Member>& members, Precision precision) {
  std::vector<Parameter> all;
  for (const Member& member : members) {
    const bool narrow = precision == Precision::bf16 && !member.keep_f32;
    all.push_back({.elements = member.elements,
                   .dtype = narrow ? Dtype::bf16 : Dtype::f32,
                   .unit = member.unit});
  }
  return all;
}

Training training_of(Stage stage, const Dials& dials, double bucket_mb) {
  return {.stage = stage,
          .ranks = dials.ranks,
          .micro_batches = dials.accumulate,
          .reproducible = dials.reproducible,
          .accumulate_in_shard = dials.accumulate_in_shard,
          .share_parameters = dials.share_parameters,
          .unit_blocks = dials.unit_blocks,
          .bucket_mb = bucket_mb,
          .optimizer_vectors = dials.optimizer_vectors};
}

// Elements of padding that all flat parameters can have.
std::int64_t padding(const FlatBuckets& buckets) {
  std::int64_t elements = 0;
  for (const auto& bucket : buckets) {
    for (const Flat& flat : bucket) {
      elements += flat.layout.padding();
    }
  }
  return elements;
}

void expect_near(std::int64_t exact, std::int64_t formula, std::int64_t most_padding,
                 const char* what) {
  EXPECT_GE(exact, formula - most_padding) << what;
  EXPECT_LE(exact, formula + most_padding) << what;
}

void compare(Stage stage, const Dials& dials, double bucket_mb) {
  const auto members = members_of(3, 96, 1003);
  const auto parameters = parameters_of(members, dials.precision);
  const Training training = training_of(stage, dials, bucket_mb);
  const Outline outline = outline_of(
      members,
      {.bucket_mb = bucket_mb, .unit_blocks = dials.unit_blocks, .precision = dials.precision});
  const std::int64_t bytes = (padding(flat_buckets(parameters, training)) + dials.ranks) * 4 *
                             std::bit_width(static_cast<std::uint64_t>(dials.accumulate));
  const Ledger exact = ledger(parameters, training);
  const Ledger formula = ledger_of(stage, outline, dials);
  expect_near(exact.parameters, formula.parameters, bytes, "parameters");
  expect_near(exact.gradients, formula.gradients, bytes, "gradients");
  expect_near(exact.optimizer, formula.optimizer, 3 * bytes, "optimizer");
  expect_near(exact.transient, formula.transient, 2 * bytes, "transient");
  if (stage != Stage::single) {
    // In shared memory a reduction is read, and only results are written: sent and received
    // together are what a rank would send over links.
    const Traffic moved = step_traffic(parameters, training, 0);
    expect_near(moved.sent + moved.received, sent_of(stage, outline, dials).total(),
                2 * dials.accumulate * bytes, "sent");
  }
}

TEST(Formulas, are_the_exact_ledger_and_traffic_without_padding) {
  for (const Stage stage : {Stage::single, Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      for (const int ranks : {1, 2, 3, 4, 8}) {
        for (const std::int64_t k : {1, 4}) {
          for (const bool in_shard : {true, false}) {
            if (stage == Stage::single && ranks > 1) {
              continue;
            }
            Dials dials = engine_dials(precision, ranks);
            dials.accumulate = k;
            dials.accumulate_in_shard = in_shard;
            SCOPED_TRACE(std::string(name_of(stage)) + " " + std::to_string(ranks) + " ranks, k " +
                         std::to_string(k));
            compare(stage, dials, 0.2);
          }
        }
      }
    }
  }
}

TEST(Formulas, are_the_exact_ledger_under_each_dial) {
  for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
    SCOPED_TRACE(std::string(name_of(stage)));
    Dials dials = engine_dials(Precision::bf16, 4);
    for (const int vectors : {0, 1}) {
      dials.optimizer_vectors = vectors;
      compare(stage, dials, 0);
    }
    dials.unit_blocks = 2;
    dials.share_parameters = true;
    compare(stage, dials, 25);
    dials.accumulate = 8;
    dials.reproducible = true;
    compare(stage, dials, 1);
  }
}

double gib(std::int64_t bytes) {
  return std::round(static_cast<double>(bytes) / 0x1p30 * 100) / 100;
}

Dials world_of_gpus(int ranks, int per_host) {
  Dials dials;
  dials.ranks = ranks;
  dials.ranks_per_host = per_host;
  dials.shard_size = std::min(ranks, per_host);
  return dials;
}

std::int64_t state(Stage stage, std::int64_t parameters, int ranks) {
  return ledger_of(stage, outline_of(parameters, 0, {}), world_of_gpus(ranks, 8)).total();
}

TEST(Formulas, the_figures_of_the_specification) {
  EXPECT_EQ(gib(state(Stage::ddp, 8'000'000'000, 8)), 119.21);
  EXPECT_EQ(gib(state(Stage::zero1, 8'000'000'000, 8)), 40.98);
  EXPECT_EQ(gib(state(Stage::zero2, 8'000'000'000, 8)), 27.94);
  EXPECT_EQ(gib(state(Stage::zero3, 8'000'000'000, 8)), 14.90);
  EXPECT_EQ(gib(state(Stage::zero3, 8'000'000'000, 64)), 1.86);
  EXPECT_EQ(state(Stage::zero3, 70'000'000'000, 14), 80'000'000'000) << "fits in exactly 80 GB";
  EXPECT_GT(state(Stage::zero3, 70'000'000'000, 13), 80'000'000'000);
  EXPECT_EQ(state(Stage::zero2, 1'000'000'000, 8), 3'750'000'000) << "case L58";
  EXPECT_EQ(state(Stage::hybrid, 8'000'000'000, 64), state(Stage::zero3, 8'000'000'000, 8));
}

TEST(Formulas, bytes_per_parameter_of_both_recipes) {
  constexpr std::int64_t kElements = 64 * 1000;
  const Outline outline = outline_of(kElements, 0, {});
  const auto per_parameter = [&](Stage stage, Precision precision, int ranks) {
    Dials dials = world_of_gpus(ranks, 64);
    dials.precision = precision;
    return static_cast<double>(ledger_of(stage, outline, dials).total()) / kElements;
  };
  for (const int ranks : {1, 2, 4, 8, 64}) {
    const double p = ranks;
    EXPECT_EQ(per_parameter(Stage::ddp, Precision::bf16, ranks), 16);
    EXPECT_EQ(per_parameter(Stage::zero1, Precision::bf16, ranks), 4 + 12 / p);
    EXPECT_EQ(per_parameter(Stage::zero2, Precision::bf16, ranks), 2 + 14 / p);
    EXPECT_EQ(per_parameter(Stage::zero3, Precision::bf16, ranks), 16 / p);
    EXPECT_EQ(per_parameter(Stage::ddp, Precision::f32, ranks), 16);
    EXPECT_EQ(per_parameter(Stage::zero1, Precision::f32, ranks), 8 + 8 / p);
    EXPECT_EQ(per_parameter(Stage::zero2, Precision::f32, ranks), 4 + 12 / p);
    EXPECT_EQ(per_parameter(Stage::zero3, Precision::f32, ranks), 16 / p);
  }
}

TEST(Formulas, zero3_sends_half_as_much_again_as_ddp) {
  const Outline outline = outline_of(8'000'000, 0, {});
  for (const int ranks : {2, 4, 8, 64}) {
    const Dials dials = world_of_gpus(ranks, 8);
    const std::int64_t ddp = sent_of(Stage::ddp, outline, dials).total();
    EXPECT_EQ(ddp, 2 * (ranks - 1) * 2 * (8'000'000 / ranks));
    EXPECT_EQ(sent_of(Stage::zero1, outline, dials).total(), ddp);
    EXPECT_EQ(sent_of(Stage::zero2, outline, dials).total(), ddp);
    EXPECT_EQ(2 * sent_of(Stage::zero3, outline, dials).total(), 3 * ddp);
  }
}

TEST(Formulas, resharding_trades_memory_for_traffic) {
  const Outline outline = outline_of(8'000'000, 8, {});
  Dials dials = world_of_gpus(16, 8);
  const SentBytes always = sent_of(Stage::zero3, outline, dials);
  const Ledger freed = ledger_of(Stage::zero3, outline, dials);
  dials.reshard = Reshard::never;
  const SentBytes never = sent_of(Stage::zero3, outline, dials);
  const Ledger kept = ledger_of(Stage::zero3, outline, dials);
  EXPECT_EQ(always.parameters, 2 * never.parameters);
  EXPECT_EQ(kept.transient - 2 * 2 * 1'000'000, 2 * 8'000'000 - 2 * 500'000) << "all but its own";
  EXPECT_EQ(freed.transient, 2 * 2 * 1'000'000 + 2 * 2 * 1'000'000) << "two units, two gradients";
  dials.reshard = Reshard::host;
  EXPECT_EQ(sent_by_host_of(Stage::zero3, outline, dials), 2 * 2 * 4'000'000) << "2N of 3N";
  EXPECT_EQ(ledger_of(Stage::zero3, outline, dials).transient - freed.transient, 2 * 1'000'000)
      << "and its part of the host's copy";
}

TEST(Formulas, accumulating_in_shards_multiplies_traffic) {
  const Outline outline = outline_of(8'000'000, 0, {});
  Dials dials = world_of_gpus(8, 8);
  const SentBytes once = sent_of(Stage::zero2, outline, dials);
  dials.accumulate = 4;
  EXPECT_EQ(sent_of(Stage::zero2, outline, dials).gradients, 4 * once.gradients);
  EXPECT_EQ(sent_of(Stage::zero2, outline, dials).parameters, once.parameters);
  EXPECT_EQ(ledger_of(Stage::zero2, outline, dials).gradients, 4 * 1'000'000) << "fp32 sums";
  dials.accumulate_in_shard = false;
  EXPECT_EQ(sent_of(Stage::zero2, outline, dials).gradients, 2 * once.gradients) << "of fp32 once";
  EXPECT_EQ(ledger_of(Stage::zero2, outline, dials).gradients, 4 * 8'000'000);
}

TEST(Formulas, forwarded_sums_travel_in_fp32) {
  const Outline outline = outline_of(8'000'000, 0, {});
  Dials dials = world_of_gpus(8, 8);
  dials.forwards_sums = true;
  EXPECT_EQ(sent_of(Stage::ddp, outline, dials).total(), 7 * 1'000'000 * (4 + 2));
}

TEST(Formulas, only_shards_of_gradients_cross_hosts_in_hybrid) {
  const Outline outline = outline_of(8'000'000, 0, {});
  const Dials dials = world_of_gpus(32, 8);
  EXPECT_EQ(sent_by_host_of(Stage::hybrid, outline, dials), 2 * 3 * 2'000'000 * 4);
  EXPECT_EQ(sent_by_host_of(Stage::zero3, outline, dials), 3 * 3 * 2'000'000 * 2);
  EXPECT_EQ(sent_by_host_of(Stage::ddp, outline, world_of_gpus(8, 8)), 0);
}

TEST(Formulas, frozen_parameters_cost_their_own_bytes) {
  const Outline outline = outline_of(1'000'000, 0, {.frozen_ppm = 900'000});
  const Ledger held = ledger_of(Stage::zero3, outline, world_of_gpus(4, 8));
  EXPECT_EQ(held.parameters, 2 * 25'000 + 2 * 900'000);
  EXPECT_EQ(held.gradients, 2 * 25'000);
  EXPECT_EQ(held.optimizer, 12 * 25'000);
}

}  // namespace
}  // namespace lockstep::plan
