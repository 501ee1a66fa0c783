#include "bench/acceptance/bounds.h"
#include "bench/acceptance/memory.h"
#include "bench/acceptance/options.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <stdexcept>

namespace lockstep::bench {
namespace {

using Words = std::vector<std::string>;

Judgement judged(Bound bound, double median) {
  return {.bound = std::move(bound), .value = Spread{median, median, median}, .failure = {}};
}

TEST(Acceptance, a_bound_holds_at_its_limits_and_not_beyond) {
  const Bound bound{"x", 0.97, 1.03};
  EXPECT_TRUE(holds(judged(bound, 1.03)));
  EXPECT_TRUE(holds(judged(bound, 0.97)));
  EXPECT_FALSE(holds(judged(bound, 1.0301)));
  EXPECT_FALSE(holds(judged(bound, 0.9699)));
}

TEST(Acceptance, what_was_not_measured_does_not_hold) {
  Judgement judgement = judged({"x", 0, 1}, 0.5);
  EXPECT_TRUE(holds(judgement));
  judgement.value.reset();
  judgement.failure = "no machine";
  EXPECT_FALSE(holds(judgement));
  const auto rows = rows_of({judgement});
  EXPECT_EQ(rows[1][2], "not measured: no machine");
  EXPECT_EQ(rows[1][3], "MISS");
}

TEST(Acceptance, every_speed_bound_of_the_first_issue) {
  const auto bounds = train_bounds("python");
  ASSERT_EQ(bounds.size(), 3u);
  EXPECT_EQ(title(bounds[0].question), "gpt2-124m f32 1x128");
  EXPECT_EQ(bounds[0].ddp_to_apart, 1.06);
  EXPECT_EQ(bounds[0].ddp_aim, 1.03);
  EXPECT_EQ(title(bounds[1].question), "gpt2-124m f32 2x256");
  EXPECT_EQ(bounds[1].ddp_to_apart, 1.03);
  EXPECT_EQ(title(bounds[2].question), "gpt2-124m bf16 2x256");
  EXPECT_EQ(bounds[2].ddp_to_apart, 1.03);
  for (const TrainBounds& one : bounds) {
    EXPECT_EQ(one.single_to_pytorch, 1.02);
    EXPECT_EQ(one.question.rounds, 5);
    ASSERT_EQ(one.question.modes.size(), 3u);
    EXPECT_EQ(one.question.modes[0].name, "apart");
    EXPECT_EQ(one.question.modes[1].name, "ddp");
    EXPECT_EQ(one.question.modes[2].name, kPyTorch);
  }
}

TEST(Acceptance, the_median_of_each_comparison_is_judged) {
  const Session session{.launches = {},
                        .comparisons = {{"ddp", "apart", {1.05, 1.01, 1.09}},
                                        {kPyTorch, "apart", {2, 2, 2}},
                                        {"apart", kPyTorchTuned, {1.01, 1.0, 1.05}},
                                        {"apart", kPyTorch, {1.03, 1.0, 1.05}}}};
  const auto judgements = judge(train_bounds("python")[0], session);
  ASSERT_EQ(judgements.size(), 2u);
  EXPECT_TRUE(holds(judgements[0]));
  EXPECT_FALSE(holds(judgements[1]));
  const auto rows = rows_of(judgements);
  EXPECT_EQ(rows[1], (Words{"gpt2-124m f32 1x128: ddp / apart", "<= 1.06 (aim 1.03)",
                            "1.050 (1.010 to 1.090)", "hit"}));
  EXPECT_EQ(rows[2][3], "MISS");
}

TEST(Acceptance, a_failed_session_misses_all_its_bounds) {
  for (const Judgement& judgement : judge(train_bounds("python")[1], {}, "rank 1 died")) {
    EXPECT_FALSE(holds(judgement));
    EXPECT_EQ(judgement.failure, "rank 1 died");
  }
}

TEST(Acceptance, memory_is_summed_over_ranks) {
  const nlohmann::json report{
      {"precision", "bf16"},
      {"stage", "zero2"},
      {"ranks", 2},
      {"parameters", 10},
      {"memory",
       {{"per_rank",
         {{{"activations_peak", 10}, {"pss_peak", 105}},
          {{"activations_peak", 30}, {"pss_peak", 135}}}},
        {"predicted",
         {{"parameters", 40}, {"gradients", 30}, {"optimizer", 20}, {"transient_peak", 10}}}}}};
  EXPECT_DOUBLE_EQ(memory_ratios(report).to_ledger, 1.0);
  EXPECT_DOUBLE_EQ(memory_ratios(report).to_formula, 200.0 / (2 * 9 * 10));
  EXPECT_THROW(memory_ratios(nlohmann::json::object()), std::exception);
}

// spec.md's column.
TEST(Acceptance, memory_is_held_to_the_bytes_per_parameter_of_each_stage) {
  const auto bytes = [](const char* precision, const char* stage, int ranks) {
    return bytes_per_parameter({.precision = precision, .stage = stage, .ranks = ranks});
  };
  for (const int p : {2, 4}) {
    EXPECT_DOUBLE_EQ(bytes("bf16", "ddp", p), 16);
    EXPECT_DOUBLE_EQ(bytes("bf16", "zero1", p), 4 + 12.0 / p);
    EXPECT_DOUBLE_EQ(bytes("bf16", "zero2", p), 2 + 14.0 / p);
    EXPECT_DOUBLE_EQ(bytes("bf16", "zero3", p), 16.0 / p);
    EXPECT_DOUBLE_EQ(bytes("f32", "zero1", p), 8 + 8.0 / p);
    EXPECT_DOUBLE_EQ(bytes("f32", "zero2", p), 4 + 12.0 / p);
  }
  EXPECT_EQ(memory_questions().size(), 9u);
  const auto judgements =
      judge(MemoryQuestion{}, MemoryRatios{.to_ledger = 1.029, .to_formula = 1.021});
  ASSERT_EQ(judgements.size(), 2u);
  EXPECT_TRUE(holds(judgements[0]));
  EXPECT_FALSE(holds(judgements[1]));
  for (const Judgement& judgement : judge(MemoryQuestion{}, std::nullopt, "rank 1 died")) {
    EXPECT_FALSE(holds(judgement));
    EXPECT_EQ(judgement.failure, "rank 1 died");
  }
}

TEST(Acceptance, areas_without_bounds_are_refused_by_name) {
  for (const auto& [area, part] : {std::pair{"checkpoint", "not built yet"},
                                   {"plan", "not built yet"},
                                   {"comm", "lockstep bench collectives"},
                                   {"speed", "unknown"}}) {
    try {
      parse_acceptance(Words{"--area", area});
      ADD_FAILURE() << area << " was accepted";
    } catch (const UsageError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(std::string("--area ") + area), std::string::npos) << text;
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(Acceptance, a_missing_yardstick_is_refused_before_anything_runs) {
  EXPECT_THROW(parse_acceptance(Words{"--python", "/nowhere/python"}), UsageError);
  EXPECT_TRUE(parse_acceptance(Words{"--require", "--python", "/bin/sh"}).require);
}

}  // namespace
}  // namespace lockstep::bench
