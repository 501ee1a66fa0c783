#include "plan/stage_advice.h"

#include "plan/queries.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::plan {
namespace {

bool says(const PlanAnswer& answer, const std::string& text) {
  return std::ranges::any_of(
      answer.advice, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(StageAdvice, state_that_fits_comfortably_is_zero1_or_zero2) {
  EXPECT_EQ(answer(query_of(8'000'000'000, 8)).advised, Stage::zero1);
  const PlanAnswer tighter = answer(query_of(14'000'000'000, 8));
  EXPECT_EQ(tighter.advised, Stage::zero2);
  EXPECT_TRUE(says(tighter, "use zero2: the model's state fits comfortably"));
  EXPECT_TRUE(says(tighter, "moves what ddp moves"));
}

TEST(StageAdvice, parameters_that_do_not_fit_are_zero3_on_one_host_and_hybrid_on_several) {
  const PlanAnswer one = answer(query_of(35'000'000'000, 8));
  EXPECT_EQ(one.advised, Stage::zero3);
  EXPECT_TRUE(says(one, "whole parameters on every rank do not fit"));
  EXPECT_TRUE(says(one, "keep --prefetch at 1"));
  const PlanAnswer several = answer(query_of(35'000'000'000, 32));
  EXPECT_EQ(several.advised, Stage::hybrid);
  EXPECT_TRUE(says(several, "only shards of gradients cross"));
  EXPECT_EQ(answer(query_of(70'000'000'000, 32)).advised, Stage::zero3)
      << "a replica is more than a host holds";
}

TEST(StageAdvice, too_few_ranks_are_told_how_many) {
  const PlanAnswer result = answer(query_of(70'000'000'000, 8));
  EXPECT_EQ(result.advised, std::nullopt);
  EXPECT_TRUE(says(result, "it fits from 14 ranks on"));
}

TEST(StageAdvice, a_unit_that_does_not_fit_is_not_for_data_parallelism) {
  PlanQuery query = query_of(4'000'000'000'000, 100'000);
  query.blocks = 100;  // of 40e9 parameters: 80 GB each, two of them at once
  const PlanAnswer result = answer(query);
  EXPECT_EQ(result.advised, std::nullopt);
  EXPECT_TRUE(says(result, "a single unit does not fit"));
  EXPECT_TRUE(says(result, "not data parallelism: tensor or pipeline parallelism"));
}

TEST(StageAdvice, names_what_data_parallelism_does_not_buy) {
  const PlanAnswer result = answer(query_of(8'000'000'000, 8));
  EXPECT_TRUE(says(result, "a step of zero1 takes at least 2.8e+03 ms"));
  EXPECT_TRUE(says(result, "the global batch grows with the ranks: 16384 tokens"));
  const PlanAnswer alone = answer(query_of(1000, 1));
  EXPECT_EQ(alone.advised, Stage::single);
  EXPECT_FALSE(says(alone, "takes at least"));
}

TEST(StageAdvice, names_the_dial_that_is_wrong) {
  PlanQuery query = query_of(35'000'000'000, 8);
  query.hardware.inside.bytes_per_s = 2e9;  // what travels takes a quarter as long as computing
  query.prefetch = 0;
  EXPECT_TRUE(says(answer(query), "prefetch is off: use --prefetch 1"));
  query.overlap = false;
  EXPECT_TRUE(says(answer(query), "overlap is off: leave --overlap on"));
  query = query_of(35'000'000'000, 8);
  query.slowest = 3;
  EXPECT_TRUE(says(answer(query), "a rank that computes 3 times as long"));
}

}  // namespace
}  // namespace lockstep::plan
