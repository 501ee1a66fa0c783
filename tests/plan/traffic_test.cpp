#include "base/range.h"
#include "lockstep/error.h"
#include "lockstep/plan.h"
#include "plan/models.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::plan {
namespace {

using Model = std::vector<Parameter>;

Model small_gpt2(Dtype dtype) {
  return gpt2({.layers = 3, .width = 96, .context = 33, .vocabulary = 257}, dtype);
}

TEST(Traffic, ddp_moves_its_share_of_the_flat_gradients_both_ways) {
  constexpr std::int64_t kElements = 64 * 7 * 12 * 5;  // no padding on any of these ranks
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Traffic traffic = step_traffic(Model{{kElements}}, {.ranks = ranks}, rank);
      const std::int64_t bytes = 4 * kElements;
      EXPECT_EQ(traffic.sent, (ranks - 1) * bytes / ranks);
      EXPECT_EQ(traffic.received, traffic.sent);
      EXPECT_EQ(traffic.collectives, 1);
    }
  }
}

// The ledger's gradients are what travels: all ranks together read (P−1) times each buffer.
TEST(Traffic, of_all_ranks_adds_up_to_the_gradients_of_the_others) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      for (const std::int64_t k : {1, 4}) {
        const Training training{.ranks = ranks, .micro_batches = k, .bucket_mb = 0.05};
        std::int64_t sent = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          sent += step_traffic(small_gpt2(dtype), training, rank).sent;
        }
        EXPECT_EQ(sent, (ranks - 1) * ledger(small_gpt2(dtype), training).gradients);
      }
    }
  }
}

TEST(Traffic, accumulating_sends_fp32_sums_once_a_step) {
  const Model model{{6400, Dtype::bf16}};
  const Traffic leaf = step_traffic(model, {.ranks = 2}, 0);
  const Traffic sums = step_traffic(model, {.ranks = 2, .micro_batches = 8}, 0);
  EXPECT_EQ(leaf.sent, 6400);
  EXPECT_EQ(sums.sent, 2 * 6400);
  const Training reproducible{.ranks = 2, .micro_batches = 8, .reproducible = true};
  EXPECT_EQ(step_traffic(model, reproducible, 0).sent, 2 * 6400);  // partial sums stay at home
}

TEST(Traffic, collectives_are_the_buckets) {
  const Model model = small_gpt2(Dtype::f32);
  const auto collectives = [&](double bucket_mb) {
    const Training training{.ranks = 2, .bucket_mb = bucket_mb};
    EXPECT_EQ(step_traffic(model, training, 0).collectives, buckets(model, training));
    return buckets(model, training);
  };
  EXPECT_EQ(collectives(0), static_cast<std::int64_t>(model.size()));
  EXPECT_GT(collectives(0), collectives(0.3));
  EXPECT_GT(collectives(0.3), collectives(25));
  EXPECT_GE(collectives(25), 1);
}

TEST(Traffic, gpt2_124m_in_25_mb_buckets) {
  const Model model = gpt2({}, Dtype::f32);
  const Training training{.ranks = 2};
  const Traffic traffic = step_traffic(model, training, 1);
  const double gradient_bytes = 4.0 * 124'439'808;
  EXPECT_GE(static_cast<double>(traffic.sent), gradient_bytes / 2);
  EXPECT_LE(static_cast<double>(traffic.sent), gradient_bytes / 2 * 1.001);
  EXPECT_GE(traffic.collectives, 12);  // 498 MB, one bucket of which is the 154 MB embedding
  EXPECT_LE(traffic.collectives, 25);
}

// As many bytes as ddp, in both dtypes: gradients are read, updated parameters written.
TEST(Traffic, sharded_stages_move_what_ddp_moves) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    for (const int ranks : {1, 2, 4}) {
      const Traffic ddp = step_traffic(small_gpt2(dtype), {.ranks = ranks}, 0);
      for (const Stage stage : {Stage::zero1, Stage::zero2}) {
        const Training training{.stage = stage, .ranks = ranks};
        const Traffic traffic = step_traffic(small_gpt2(dtype), training, 0);
        EXPECT_EQ(traffic.sent, ddp.sent);
        EXPECT_EQ(traffic.received, ddp.received);
      }
    }
  }
}

TEST(Traffic, zero3_on_one_host_reads_parameters_in_place) {
  const Model model{{6400, Dtype::bf16}};
  const Training training{.stage = Stage::zero3, .ranks = 2, .micro_batches = 3};
  const Traffic traffic = step_traffic(model, training, 0);
  EXPECT_EQ(traffic.received, 3 * 6400);
  EXPECT_EQ(traffic.sent, 0);
  EXPECT_EQ(traffic.collectives, 3);
}

TEST(Traffic, shared_parameters_do_not_travel) {
  const Model model{{6400, Dtype::bf16}};
  for (const auto& [stage, sent] : {std::pair{Stage::ddp, 6400}, {Stage::zero1, 0}}) {
    const Training training{.stage = stage, .ranks = 2, .share_parameters = true};
    const Traffic traffic = step_traffic(model, training, 0);
    EXPECT_EQ(traffic.received, 6400);
    EXPECT_EQ(traffic.sent, sent);
    EXPECT_EQ(traffic.collectives, 1);
  }
}

TEST(Traffic, accumulating_in_shards_moves_every_leaf) {
  const Model model{{6400, Dtype::bf16}};
  const auto moved = [&](bool in_shard) {
    return step_traffic(
        model,
        {.stage = Stage::zero2, .ranks = 2, .micro_batches = 8, .accumulate_in_shard = in_shard},
        0);
  };
  EXPECT_EQ(moved(true).received, 8 * 6400);
  EXPECT_EQ(moved(true).sent, 6400);
  EXPECT_EQ(moved(true).collectives, 8 + 1);
  EXPECT_EQ(moved(false).received, 2 * 6400);
  EXPECT_EQ(moved(false).sent, 6400);
}

TEST(Traffic, single_moves_nothing) {
  const Traffic traffic = step_traffic(small_gpt2(Dtype::f32), {.stage = Stage::single}, 0);
  EXPECT_EQ(traffic.sent, 0);
  EXPECT_EQ(traffic.received, 0);
  EXPECT_EQ(traffic.collectives, 0);
  EXPECT_EQ(buckets(small_gpt2(Dtype::f32), {.stage = Stage::single}), 0);
}

TEST(Traffic, small_collectives_are_read_from_the_others) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const Training training{.ranks = ranks};
    const Traffic traffic =
        step_traffic({}, training, ranks - 1, {.decision_elements = 217, .losses = 4});
    EXPECT_EQ(traffic.received, (ranks - 1) * (217 + 4) * 8);
    EXPECT_EQ(traffic.sent, 0);
    EXPECT_EQ(traffic.collectives, 2);
  }
  EXPECT_EQ(step_traffic({}, {.ranks = 2}, 0, {.losses = 1}).collectives, 1);
}

// Above what a slot holds, ranks own blocks of granules in chunks that fill a stage.
TEST(Traffic, a_large_decision_goes_in_chunks) {
  constexpr std::int64_t kChunk = (1 << 20) / 8;
  for (const std::int64_t elements : {std::int64_t{1025}, kChunk, kChunk + 100}) {
    std::int64_t received = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const Traffic traffic = step_traffic({}, {.ranks = 3}, rank, {.decision_elements = elements});
      EXPECT_EQ(traffic.sent, traffic.received);
      received += traffic.received;
    }
    EXPECT_EQ(received, 2 * 8 * elements);
  }
  const Traffic at_the_limit = step_traffic({}, {.ranks = 3}, 0, {.decision_elements = 1024});
  EXPECT_EQ(at_the_limit.sent, 0);
  EXPECT_EQ(at_the_limit.received, 2 * 8192);
}

TEST(Traffic, refuses_ranks_outside_and_unbuilt_stages) {
  EXPECT_THROW(step_traffic({}, {.ranks = 2}, 2), UsageError);
  EXPECT_THROW(step_traffic({}, {.ranks = 2}, -1), UsageError);
  EXPECT_THROW(step_traffic({}, {.stage = Stage::hybrid, .ranks = 2}, 0), UsageError);
}

}  // namespace
}  // namespace lockstep::plan
