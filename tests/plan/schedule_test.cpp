#include "plan/schedule.h"

#include "plan/formulas.h"
#include "plan/queries.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::plan {
namespace {

// 4 equal blocks of 250 elements, each computed in 1 s forward and 2 s backward.
class Schedule : public ::testing::Test {
 protected:
  Schedule() : outline_(outline_of(1000, 4, {.bucket_mb = 0.0005})), hardware_(round_hardware()) {
    dials_.ranks = 4;
    dials_.ranks_per_host = 4;
    dials_.shard_size = 4;
    hardware_.inside = {0, 750};  // 500 bytes of a block gathered, or reduced, in half a second
    hardware_.memory_bytes_per_s = 1e30;
  }

  Job job(Stage stage) const {
    return {.stage = stage,
            .outline = outline_,
            .dials = dials_,
            .hardware = hardware_,
            .operations = {.per_element_token = 1e12 / 500}};
  }
  StepTime time(Stage stage) const { return simulate(schedule_of(job(stage)), {}); }
  std::int64_t count(Stage stage, TaskKind kind) const {
    return std::ranges::count(schedule_of(job(stage)), kind, &Task::kind);
  }

  Outline outline_;
  Dials dials_;
  Hardware hardware_;
};

constexpr double kDecision = 256.0 * 2 * 3 / 4 / 750;  // all_reduce of 256 bytes

TEST_F(Schedule, single_computes_only) {
  EXPECT_DOUBLE_EQ(time(Stage::single).step_s, 4 * 3);
  EXPECT_DOUBLE_EQ(time(Stage::single).exposed_s, 0);
}

// Each block is one bucket, an all_reduce of one second; the last is exposed.
TEST_F(Schedule, ddp_hides_all_buckets_but_the_last) {
  EXPECT_EQ(count(Stage::ddp, TaskKind::all_reduce), 4);
  EXPECT_NEAR(time(Stage::ddp).step_s, 12 + 1 + kDecision, 1e-9);
  dials_.overlap = false;
  EXPECT_NEAR(time(Stage::ddp).step_s, 12 + 4 + kDecision, 1e-9);
}

TEST_F(Schedule, zero1_spreads_what_it_updated) {
  EXPECT_EQ(count(Stage::zero1, TaskKind::spread), 4);
  EXPECT_NEAR(time(Stage::zero1).step_s, 12 + 0.5 + kDecision + 4 * 0.5, 1e-9);
}

TEST_F(Schedule, accumulation_exchanges_once_or_in_shards_each_time) {
  dials_.accumulate = 3;
  EXPECT_EQ(count(Stage::ddp, TaskKind::all_reduce), 4);
  EXPECT_EQ(count(Stage::zero2, TaskKind::reduce), 3 * 4);
  EXPECT_EQ(count(Stage::zero3, TaskKind::gather), 3 * 2 * 5) << "4 units and the root";
  dials_.accumulate_in_shard = false;
  EXPECT_EQ(count(Stage::zero2, TaskKind::reduce), 4);
}

// Gathers take half of a block's forward: with prefetch only the first of forward and of backward
// (whose unit its forward has just freed) are exposed, and the last reduction.
TEST_F(Schedule, zero3_with_and_without_prefetch) {
  dials_.prefetch = 1;
  EXPECT_NEAR(time(Stage::zero3).step_s, 2 * 0.5 + 12 + 0.5 + kDecision, 1e-9);
  dials_.prefetch = 0;
  EXPECT_NEAR(time(Stage::zero3).step_s, 8 * 0.5 + 12 + 0.5 + kDecision, 1e-9);
}

TEST_F(Schedule, reshard_never_gathers_once) {
  dials_.reshard = Reshard::never;
  dials_.accumulate = 2;
  EXPECT_EQ(count(Stage::zero3, TaskKind::gather), 5);
  dials_.host_memory = HostMemory::shared;
  dials_.reshard = Reshard::always;
  EXPECT_EQ(count(Stage::zero3, TaskKind::gather), 0) << "read in place";
}

TEST_F(Schedule, hybrid_crosses_hosts_with_shards_of_gradients_only) {
  dials_.ranks = 8;
  hardware_.between = {0, 1e6};
  const auto tasks = schedule_of(job(Stage::hybrid));
  for (const Task& task : tasks) {
    const bool crosses = task.kind == TaskKind::all_reduce || task.kind == TaskKind::decide;
    EXPECT_EQ(task.lane == Lane::between, crosses) << name_of(task.kind);
  }
  EXPECT_EQ(count(Stage::hybrid, TaskKind::all_reduce), 5);
  const auto crossing = std::ranges::find(tasks, TaskKind::all_reduce, &Task::kind);
  // 63 elements of fp32, both ways, half of them to the other replica; four shards share the link.
  EXPECT_NEAR(crossing->seconds, 2 * 63 * 4 / 2.0 * 4 / 1e6, 1e-12);
}

TEST_F(Schedule, recomputation_runs_forward_again) {
  dials_.recompute = true;
  EXPECT_DOUBLE_EQ(time(Stage::single).step_s, 4 * 4);
}

TEST_F(Schedule, a_forced_algorithm_must_be_able_to) {
  Job forced = job(Stage::ddp);
  forced.algorithm = Algorithm::tree;
  EXPECT_TRUE(is_possible(forced));
  forced.stage = Stage::zero2;
  EXPECT_FALSE(is_possible(forced));
  forced.stage = Stage::single;
  EXPECT_TRUE(is_possible(forced));
}

TEST_F(Schedule, of_a_hundred_thousand_ranks_has_as_many_tasks) {
  const std::size_t tasks = schedule_of(job(Stage::zero3)).size();
  dials_.ranks = 100'000;
  EXPECT_EQ(schedule_of(job(Stage::zero3)).size(), tasks);
}

}  // namespace
}  // namespace lockstep::plan
