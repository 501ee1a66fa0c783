#include "plan/query.h"

#include "lockstep/error.h"
#include "plan/queries.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lockstep::plan {
namespace {

std::int64_t naive_smallest(PlanQuery query, Stage stage, int most) {
  for (query.ranks = 1; query.ranks <= most; ++query.ranks) {
    query.hosts = 0;
    if (answer(query).of(stage).fits) {
      return query.ranks;
    }
  }
  return 0;
}

TEST(Query, smallest_ranks_of_70e9_in_80_GB) {
  PlanQuery query = query_of(70'000'000'000, 8);
  const PlanAnswer result = answer(query);
  EXPECT_EQ(result.of(Stage::zero3).smallest_ranks, 14);
  EXPECT_EQ(result.of(Stage::ddp).smallest_ranks, std::nullopt);
  EXPECT_EQ(result.of(Stage::hybrid).smallest_ranks, std::nullopt) << "a host has 8 ranks";
  EXPECT_EQ(result.smallest_stage, std::nullopt);
  query.ranks = 14;
  const PlanAnswer fourteen = answer(query);
  EXPECT_TRUE(fourteen.of(Stage::zero3).fits) << "exactly 80e9 of 80e9";
  EXPECT_EQ(fourteen.smallest_stage, Stage::zero3);
  query.device_memory = 79'999'999'999;
  EXPECT_FALSE(answer(query).of(Stage::zero3).fits);
}

TEST(Query, smallest_ranks_are_those_of_trying_all) {
  for (const std::int64_t parameters :
       std::vector<std::int64_t>{1'000'000'000, 9'000'000'000, 30'000'000'000}) {
    const PlanQuery query = query_of(parameters, 4);
    const PlanAnswer result = answer(query);
    for (const Stage stage : {Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
      EXPECT_EQ(result.of(stage).smallest_ranks.value_or(0), naive_smallest(query, stage, 40))
          << name_of(stage) << " of " << parameters;
    }
  }
}

TEST(Query, the_smallest_stage_is_the_first_that_fits) {
  const std::vector<std::pair<std::int64_t, Stage>> cases{{5'000'000'000, Stage::ddp},
                                                          {5'000'000'001, Stage::zero1},
                                                          {14'545'454'545, Stage::zero2},
                                                          {22'000'000'000, Stage::zero3}};
  for (const auto& [parameters, stage] : cases) {
    EXPECT_EQ(answer(query_of(parameters, 8)).smallest_stage, stage) << parameters;
  }
  EXPECT_EQ(answer(query_of(1000, 1)).smallest_stage, Stage::single);
}

TEST(Query, the_largest_model_fits_and_one_more_parameter_does_not) {
  const PlanAnswer result = answer(query_of(1'000'000, 8));
  for (const Stage stage : kPlannedStages) {
    const std::int64_t most = result.of(stage).largest_parameters.value();
    EXPECT_TRUE(answer(query_of(most, 8)).of(stage).fits) << name_of(stage);
    EXPECT_FALSE(answer(query_of(most + 1, 8)).of(stage).fits) << name_of(stage);
  }
}

PlanQuery model_query() {
  PlanQuery query = query_of(0, 4);
  query.members = members_of(4, 256, 1000);
  query.transformer = Transformer{.family = Family::gpt2,
                                  .layers = 4,
                                  .width = 256,
                                  .heads = 4,
                                  .head_size = 64,
                                  .hidden = 1024,
                                  .vocabulary = 1000,
                                  .context = 512};
  query.sequence = 512;
  return query;
}

TEST(Query, the_largest_micro_batch_fits_and_one_more_sequence_does_not) {
  PlanQuery query = model_query();
  query.device_memory = 1'000'000'000;
  const PlanAnswer result = answer(query);
  for (const Stage stage : kPlannedStages) {
    query.micro_batch = result.of(stage).largest_micro_batch.value();
    ASSERT_GE(query.micro_batch, 1);
    EXPECT_TRUE(answer(query).of(stage).fits);
    ++query.micro_batch;
    EXPECT_FALSE(answer(query).of(stage).fits);
  }
}

TEST(Query, categories_add_up_and_activations_count) {
  const PlanAnswer result = answer(model_query());
  EXPECT_GT(result.activations.peak, 0);
  for (const StageAnswer& one : result.stages) {
    EXPECT_EQ(one.total_bytes, one.bytes.parameters + one.bytes.gradients + one.bytes.optimizer +
                                   one.bytes.transient + result.activations.peak);
  }
  EXPECT_EQ(result.tokens_per_step, 4 * 512);
}

TEST(Query, floors_are_traffic_over_the_slowest_link) {
  const PlanAnswer inside = answer(query_of(8'000'000'000, 8));
  EXPECT_DOUBLE_EQ(inside.of(Stage::ddp).floor_ms, 28e9 / 1e10 * 1e3);
  EXPECT_DOUBLE_EQ(inside.of(Stage::zero3).floor_ms, 42e9 / 1e10 * 1e3);
  const PlanAnswer between = answer(query_of(8'000'000'000, 16));
  EXPECT_DOUBLE_EQ(between.of(Stage::ddp).floor_ms, 2 * 8e9 / 1e9 * 1e3) << "of a host";
  for (const PlanAnswer& result : {inside, between}) {
    for (const StageAnswer& one : result.stages) {
      ASSERT_TRUE(one.time);
      EXPECT_GE(one.time->step_s * 1e3, one.floor_ms * (1 - 1e-9)) << name_of(one.stage);
      EXPECT_GE(one.time->communication_s * 1e3, one.floor_ms * (1 - 1e-9)) << name_of(one.stage);
    }
  }
}

TEST(Query, a_slow_rank_changes_the_answer) {
  PlanQuery query = query_of(8'000'000, 8);
  const double even = answer(query).of(Stage::ddp).time->step_s;
  query.slowest = 2;
  const StageAnswer slow = answer(query).of(Stage::ddp);
  EXPECT_GT(slow.time->step_s, 1.5 * even);
  EXPECT_LT(slow.efficiency, 0.7);
}

TEST(Query, curves_and_timeline_come_when_asked_for) {
  PlanQuery query = model_query();
  query.ranks = 6;
  EXPECT_TRUE(answer(query).curves.empty());
  EXPECT_TRUE(answer(query).timeline.empty());
  query.curves = true;
  query.timeline = Stage::zero3;
  const PlanAnswer result = answer(query);
  ASSERT_EQ(result.curves.size(), kPlannedStages.size());
  const Curve& zero3 = result.curves[4];
  EXPECT_EQ(zero3.points.size(), 18u) << "1, 2, 4, 6, 8, … 65,536";
  EXPECT_EQ(zero3.points[3].ranks, 6);
  EXPECT_EQ(zero3.points[3].total_bytes, result.of(Stage::zero3).total_bytes);
  EXPECT_DOUBLE_EQ(zero3.points[3].step_ms.value(), result.of(Stage::zero3).time->step_s * 1e3);
  EXPECT_EQ(result.curves[0].points.size(), 1u) << "single is alone";
  ASSERT_FALSE(result.timeline.empty());
  EXPECT_DOUBLE_EQ(result.timeline.back().end_s, result.of(Stage::zero3).time->step_s);
}

TEST(Query, a_hundred_thousand_ranks) {
  const PlanAnswer result = answer(query_of(1'000'000'000'000, 100'000));
  EXPECT_EQ(result.of(Stage::zero3).bytes.total(), 160'000'000);
  EXPECT_GT(result.of(Stage::zero3).time->exposed_s, 0);
}

void expect_refused(const PlanQuery& query, const std::string& names) {
  try {
    answer(query);
    ADD_FAILURE() << "expected a refusal naming " << names;
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(names), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Query, nonsense_is_refused_by_name) {
  const auto changed = [](auto change) {
    PlanQuery query = query_of(1000, 8);
    change(query);
    return query;
  };
  expect_refused(query_of(0, 1), "--params");
  expect_refused(query_of(-5, 1), "--params");
  expect_refused(query_of(kMostParameters + 1, 1), "--params");
  expect_refused(query_of(1000, 0), "--ranks");
  expect_refused(query_of(1000, -3), "--ranks");
  expect_refused(query_of(7, 8), "--ranks");
  expect_refused(changed([](PlanQuery& query) { query.hosts = 3; }), "--hosts");
  expect_refused(changed([](PlanQuery& query) { query.hosts = 16; }), "--hosts");
  expect_refused(changed([](PlanQuery& query) { query.shard_size = 3; }), "--shard-size");
  expect_refused(changed([](PlanQuery& query) { query.share_parameters = true; }),
                 "--share-parameters");
  expect_refused(changed([](PlanQuery& query) { query.micro_batch = 0; }), "--micro-batch");
  expect_refused(changed([](PlanQuery& query) { query.sequence = 2'000'000'000; }), "--seq");
  expect_refused(changed([](PlanQuery& query) { query.accumulate = 0; }), "--accumulate");
  expect_refused(changed([](PlanQuery& query) { query.slowest = 0.5; }), "--slowest");
  expect_refused(changed([](PlanQuery& query) { query.bucket_mb = -1; }), "--bucket-mb");
  expect_refused(changed([](PlanQuery& query) { query.bucket_mb = 0; }), "--bucket-mb 0");
  expect_refused(changed([](PlanQuery& query) { query.prefetch = -1; }), "--prefetch");
  expect_refused(changed([](PlanQuery& query) { query.unit_blocks = 0; }), "--unit-blocks");
  expect_refused(changed([](PlanQuery& query) { query.frozen_ppm = 1'000'000; }), "--frozen");
  expect_refused(changed([](PlanQuery& query) {
                   query.ranks = 6;
                   query.reproducible = true;
                 }),
                 "--reproducible");
  PlanQuery long_one = model_query();
  long_one.sequence = 513;
  expect_refused(long_one, "--seq");
}

}  // namespace
}  // namespace lockstep::plan
