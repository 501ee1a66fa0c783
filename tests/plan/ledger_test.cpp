#include "base/range.h"
#include "lockstep/error.h"
#include "lockstep/plan.h"
#include "plan/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

namespace lockstep::plan {
namespace {

using Model = std::vector<Parameter>;

// One parameter whose size needs no padding on up to 8 ranks.
constexpr std::int64_t kElements = 64 * 8 * 10;

TEST(Ledger, bytes_per_parameter_of_each_dtype) {
  for (const int ranks : {1, 2, 8}) {
    const Training training{.ranks = ranks};
    const Ledger f32 = ledger(Model{{kElements, Dtype::f32}}, training);
    EXPECT_EQ(f32.parameters, 4 * kElements);
    EXPECT_EQ(f32.gradients, 4 * kElements);
    EXPECT_EQ(f32.optimizer, 8 * kElements);
    EXPECT_EQ(f32.transient, 0);
    EXPECT_EQ(f32.total(), 16 * kElements);
    const Ledger bf16 = ledger(Model{{kElements, Dtype::bf16}}, training);
    EXPECT_EQ(bf16.parameters, 2 * kElements);
    EXPECT_EQ(bf16.gradients, 2 * kElements);
    EXPECT_EQ(bf16.optimizer, 12 * kElements);
    EXPECT_EQ(bf16.total(), 16 * kElements);
    EXPECT_EQ(ledger(Model{{kElements, Dtype::f64}}, training).total(), 32 * kElements);
  }
}

TEST(Ledger, optimizer_holds_its_vectors_and_the_masters) {
  for (const int vectors : {0, 1, 2}) {
    const Training training{.ranks = 2, .optimizer_vectors = vectors};
    EXPECT_EQ(ledger(Model{{kElements, Dtype::f32}}, training).optimizer, 4 * vectors * kElements);
    EXPECT_EQ(ledger(Model{{kElements, Dtype::bf16}}, training).optimizer,
              (4 * vectors + 4) * kElements);
  }
}

TEST(Ledger, accumulating_holds_bf16_gradients_in_fp32) {
  const Training training{.ranks = 2, .micro_batches = 3};
  EXPECT_EQ(ledger(Model{{kElements, Dtype::bf16}}, training).gradients, 4 * kElements);
  EXPECT_EQ(ledger(Model{{kElements, Dtype::f32}}, training).gradients, 4 * kElements);
}

TEST(Ledger, reproducible_holds_log2_of_the_micro_batches_partial_sums) {
  for (const auto& [k, sums] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 1}, {4, 2}, {8, 3}, {64, 6}}) {
    const Training training{.ranks = 2, .micro_batches = k, .reproducible = true};
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      EXPECT_EQ(ledger(Model{{kElements, dtype}}, training).gradients, 4 * sums * kElements) << k;
    }
  }
  const Training one{.ranks = 2, .micro_batches = 1, .reproducible = true};
  EXPECT_EQ(ledger(Model{{kElements, Dtype::bf16}}, one).gradients, 2 * kElements);
}

TEST(Ledger, ddp_of_8e9_parameters_on_8_ranks_needs_119_2_GiB) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Ledger held = ledger(Model{{8'000'000'000, dtype}}, {.ranks = 8});
    EXPECT_EQ(std::round(static_cast<double>(held.total()) / 0x1p30 * 10) / 10, 119.2);
  }
}

// spec.md: 119.2 → 41.0 → 27.9 → 14.9 GiB, and 8 + 8/P, 4 + 12/P, 2 + 14/P, 16/P bytes per
// parameter.
TEST(Ledger, sharded_stages_divide_the_optimizer_and_the_gradients) {
  const auto state = [](Dtype dtype, Stage stage, int ranks) {
    const Ledger held = ledger(Model{{kElements, dtype}}, {.stage = stage, .ranks = ranks});
    return static_cast<double>(held.total() - held.transient) / kElements;
  };
  for (const int ranks : {1, 2, 4, 8}) {
    EXPECT_EQ(state(Dtype::f32, Stage::zero1, ranks), 8 + 8.0 / ranks);
    EXPECT_EQ(state(Dtype::bf16, Stage::zero1, ranks), 4 + 12.0 / ranks);
    EXPECT_EQ(state(Dtype::f32, Stage::zero2, ranks), 4 + 12.0 / ranks);
    EXPECT_EQ(state(Dtype::bf16, Stage::zero2, ranks), 2 + 14.0 / ranks);
    EXPECT_EQ(state(Dtype::f32, Stage::zero3, ranks), 16.0 / ranks);
    EXPECT_EQ(state(Dtype::bf16, Stage::zero3, ranks), 16.0 / ranks);
  }
  const auto gib = [](Stage stage) {
    const Ledger held = ledger(Model{{8'000'000'000, Dtype::bf16}}, {.stage = stage, .ranks = 8});
    return std::round(static_cast<double>(held.total() - held.transient) / 0x1p30 * 10) / 10;
  };
  EXPECT_EQ(gib(Stage::zero1), 41.0);
  EXPECT_EQ(gib(Stage::zero2), 27.9);
  EXPECT_EQ(gib(Stage::zero3), 14.9);
}

// The host has one copy, of which each rank updates its shard.
TEST(Ledger, sharing_divides_parameters_and_optimizer) {
  const auto state = [](Stage stage, int ranks) {
    const Ledger held = ledger(Model{{kElements, Dtype::bf16}},
                               {.stage = stage, .ranks = ranks, .share_parameters = true});
    return static_cast<double>(held.total() - held.transient) / kElements;
  };
  for (const int ranks : {1, 2, 4, 8}) {
    EXPECT_EQ(state(Stage::ddp, ranks), 2 + 14.0 / ranks);
    EXPECT_EQ(state(Stage::zero1, ranks), 2 + 14.0 / ranks);
    EXPECT_EQ(state(Stage::zero2, ranks), 16.0 / ranks);
    EXPECT_EQ(state(Stage::zero3, ranks), 16.0 / ranks);
  }
}

TEST(Ledger, accumulating_in_shards_or_in_full) {
  const auto held = [](std::int64_t k, bool in_shard, bool reproducible = false) {
    return ledger(Model{{kElements, Dtype::bf16}}, {.stage = Stage::zero2,
                                                    .ranks = 2,
                                                    .micro_batches = k,
                                                    .reproducible = reproducible,
                                                    .accumulate_in_shard = in_shard});
  };
  EXPECT_EQ(held(1, true).gradients, kElements);
  EXPECT_EQ(held(4, true).gradients, 2 * kElements);
  EXPECT_EQ(held(4, true, true).gradients, 2 * 2 * kElements);
  EXPECT_EQ(held(4, true).transient, 2 * 2 * kElements) << "two windows";
  EXPECT_EQ(held(4, false).gradients, 4 * kElements);
  EXPECT_EQ(held(4, false).transient, 0);
}

// spec.md's formulas hold to 2 percent with all that is in flight.
TEST(Ledger, windows_are_small_against_a_large_model) {
  const Model model = gpt2({}, Dtype::bf16);
  for (const int ranks : {2, 4}) {
    for (const auto& [stage, shared, bytes] : {std::tuple{Stage::zero2, false, 2 + 14.0 / ranks},
                                               {Stage::zero2, true, 16.0 / ranks},
                                               {Stage::zero3, false, 16.0 / ranks}}) {
      const Ledger held =
          ledger(model, {.stage = stage, .ranks = ranks, .share_parameters = shared});
      EXPECT_EQ(held.transient, 2 * (2 << 20));
      EXPECT_LT(static_cast<double>(held.total()), 1.02 * bytes * 124'439'808);
    }
  }
}

TEST(Ledger, padding_is_counted_and_small) {
  // Two members of one element: each starts on a granule, and two ranks share what they fill.
  const Ledger tiny = ledger(Model{{1}, {1}}, {.ranks = 2});
  EXPECT_EQ(tiny.parameters, 4 * 128);
  EXPECT_EQ(ledger(Model{{1}, {1}}, {.ranks = 2, .bucket_mb = 0}).parameters, 2 * 4 * 128);
  EXPECT_EQ(ledger(Model{{0}}, {.ranks = 2}).total(), 0);
  EXPECT_EQ(ledger({}, {.ranks = 2}).total(), 0);
}

TEST(Ledger, frozen_parameters_cost_their_own_bytes_only) {
  const Model model{{kElements}, {1001, Dtype::bf16, false}};
  const Ledger held = ledger(model, {.ranks = 2});
  EXPECT_EQ(held.parameters, 4 * kElements + 2 * 1001);
  EXPECT_EQ(held.gradients, 4 * kElements);
  EXPECT_EQ(held.optimizer, 8 * kElements);
}

TEST(Ledger, gpt2_124m_costs_16_bytes_per_parameter_and_at_most_one_percent_of_padding) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Model model = gpt2({}, dtype);
    const auto elements = std::accumulate(
        model.begin(), model.end(), std::int64_t{0},
        [](std::int64_t sum, const Parameter& parameter) { return sum + parameter.elements; });
    EXPECT_EQ(elements, 124'439'808);
    for (const double bucket_mb : {0.0, 1.0, 25.0}) {
      for (const int ranks : {1, 2, 4}) {
        const Ledger held = ledger(model, {.ranks = ranks, .bucket_mb = bucket_mb});
        EXPECT_GE(held.total(), 16 * elements);
        EXPECT_LE(held.total(), 16 * elements + 16 * elements / 100);
      }
    }
  }
}

TEST(Ledger, single_equals_ddp_on_one_rank) {
  const Model model =
      gpt2({.layers = 2, .width = 130, .context = 7, .vocabulary = 11}, Dtype::bf16);
  const Ledger single = ledger(model, {.stage = Stage::single});
  const Ledger ddp = ledger(model, {.stage = Stage::ddp});
  EXPECT_EQ(single.parameters, ddp.parameters);
  EXPECT_EQ(single.gradients, ddp.gradients);
  EXPECT_EQ(single.optimizer, ddp.optimizer);
}

TEST(Ledger, refuses_stages_that_are_not_built) {
  EXPECT_THROW(ledger(Model{{1}}, {.stage = Stage::hybrid}), UsageError);
}

}  // namespace
}  // namespace lockstep::plan
