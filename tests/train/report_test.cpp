#include "train/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace lockstep::train {
namespace {

using nlohmann::json;

RankRecord some_rank() {
  RankRecord rank{.held = {1, 2, 3, 4},
                  .baseline = 6,
                  .shared_at_rest = 20,
                  .sent = 8,
                  .received = 9,
                  .collectives = 10,
                  .forwards = 6};
  rank.phases[0] = {.held = {1, 2, 3, 0}, .resident = 5};
  rank.phases[1] = {.held = {1, 2, 3, 4}, .activations = 5, .activations_peak = 9, .resident = 7};
  return rank;
}

Report some_report() {
  Report report;
  report.command = "lockstep train";
  report.options.ranks = 2;
  report.options.steps = 3;
  report.options.accumulate = 2;
  report.parameters = 10;
  report.flops_per_step = 4e9;
  report.peak_flops = 8e10;
  report.history.losses = {0.1, 1.0 / 3.0, std::numeric_limits<double>::quiet_NaN()};
  report.history.grad_norms = {1, 2, 3};
  report.history.step_ms = {90, 110, 100};
  report.history.exposed_ms = {5};
  report.history.validation = {{3, 5.25}};
  report.ranks = {some_rank(), {.shared_at_rest = 22}};
  report.shared_allocated = 43;
  report.predicted = {.ledger = {1, 2, 3, 0}, .step = {.sent = 4}};
  report.cores = 2;
  report.advice = {"use less"};
  return report;
}

TEST(Report, HasTheDocumentedFields) {
  const json report = report_json(some_report());
  for (const char* field : {"version",
                            "command",
                            "model",
                            "parameters",
                            "ranks",
                            "hosts",
                            "stage",
                            "precision",
                            "seed",
                            "micro_batch",
                            "accumulate",
                            "threads",
                            "global_batch_tokens",
                            "steps",
                            "first_step",
                            "losses",
                            "grad_norms",
                            "validation",
                            "skipped_steps",
                            "weights_sha256",
                            "step_ms",
                            "tokens_per_s",
                            "model_flops_per_step",
                            "mfu",
                            "exposed_comm_ms",
                            "memory",
                            "traffic",
                            "advice",
                            "machine"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
  const json rank = report["memory"]["per_rank"][0];
  EXPECT_EQ(rank, (json{{"parameters", 1},
                        {"gradients", 2},
                        {"optimizer", 3},
                        {"transient_peak", 4},
                        {"activations_peak", 5},
                        {"baseline", 6},
                        {"pss_at_rest", 5},
                        {"pss_peak", 7}}));
  EXPECT_EQ(report["memory"]["predicted"]["pss_at_rest"], 1 + 2 + 3);
  for (const auto& item : rank.items()) {
    EXPECT_TRUE(report["memory"]["predicted"].contains(item.key())) << item.key();
  }
  EXPECT_EQ(report["traffic"]["per_rank"][0],
            (json{{"sent", 8}, {"received", 9}, {"collectives", 10}}));
  EXPECT_EQ(report["traffic"]["predicted"]["sent"], 12);
  EXPECT_EQ(report["advice"], json({"use less"}));
  EXPECT_EQ(report["machine"].size(), 3u);
  EXPECT_EQ(report["machine"]["cores"], 2);
}

TEST(Report, TellsMemoryByPhaseAndWhatIsShared) {
  const json memory = report_json(some_report())["memory"];
  ASSERT_EQ(memory["phases"].size(), 2u);
  const json& phases = memory["phases"][0];
  EXPECT_EQ(phases.size(), 2u) << "those that were looked at";
  EXPECT_EQ(phases["at_rest"]["pss"], 5);
  EXPECT_EQ(phases["at_rest"]["transient"], 0);
  EXPECT_EQ(phases["after_forward"], (json{{"parameters", 1},
                                           {"gradients", 2},
                                           {"optimizer", 3},
                                           {"transient", 4},
                                           {"activations", 5},
                                           {"activations_peak", 9},
                                           {"pss", 7}}));
  EXPECT_EQ(memory["phases"][1], json::object());
  EXPECT_EQ(memory["shared"], (json{{"pss", 42}, {"memfds", 43}}));
  EXPECT_EQ(name_of(Moment::after_backward), "last_hook");
  EXPECT_EQ(name_of(Moment::after_update), "after_update");
}

TEST(Report, DerivesSpeedFromTheMedianStep) {
  const json report = report_json(some_report());
  EXPECT_EQ(report["step_ms"], (json{{"median", 100.0}, {"min", 90.0}, {"max", 110.0}}));
  EXPECT_EQ(report["global_batch_tokens"], 2 * 2 * 2 * 256);
  EXPECT_DOUBLE_EQ(report["tokens_per_s"], 20480.0);
  EXPECT_DOUBLE_EQ(report["mfu"], 0.5);  // 4e10 of 8e10
}

TEST(Report, KeepsRoundTripDigits) {
  const json report = json::parse(report_json(some_report()).dump());
  EXPECT_EQ(report["losses"][0].get<double>(), 0.1);
  EXPECT_EQ(report["losses"][1].get<double>(), 1.0 / 3.0);
  EXPECT_TRUE(report["losses"][2].is_null());
  EXPECT_EQ(report["validation"], (json{{{"step", 3}, {"loss", 5.25}}}));
}

TEST(Report, WithoutStepsHasNoSpeed) {
  Report report = some_report();
  report.history = {};
  const json text = report_json(report);
  EXPECT_EQ(text["tokens_per_s"], 0.0);
  EXPECT_EQ(text["mfu"], 0.0);
  EXPECT_EQ(text["step_ms"]["median"], 0.0);
}

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({}), 0.0);
  EXPECT_EQ(median({3}), 3.0);
  EXPECT_EQ(median({4, 1, 2}), 2.0);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(GatherRecords, GivesEveryRankAllOfThem) {
  Group alone = Group::alone();
  RankRecord mine;
  mine.sent = 7;
  const auto all = gather_records(alone, mine);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].sent, 7);
}

TEST(MetricsLine, TellsOneStep) {
  const json line = metrics_line({.step = 4,
                                  .loss = 1.5,
                                  .learning_rate = 0.1,
                                  .grad_norm = 2,
                                  .ms = 500,
                                  .forwards = 2,
                                  .traffic = {10, 20, 3}},
                                 {.tokens = 1000, .flops = 4e9, .peak_flops = 2e10});
  EXPECT_EQ(line["step"], 4);
  EXPECT_EQ(line["train/loss"], 1.5);
  EXPECT_EQ(line["perf/tokens_per_s"], 2000.0);
  EXPECT_DOUBLE_EQ(line["perf/mfu"], 0.4);
  EXPECT_EQ(line["comm/collectives"], 3);
  EXPECT_EQ(line["forwards"], 2);
}

TEST(MemoryTags, AreWhatARankHolds) {
  const json tags = memory_tags(some_report().ranks[0]);
  EXPECT_EQ(tags, (json{{"memory/parameters", 1},
                        {"memory/gradients", 2},
                        {"memory/optimizer", 3},
                        {"memory/transient_peak", 4},
                        {"memory/activations_peak", 5},
                        {"memory/pss_at_rest", 5},
                        {"memory/pss_peak", 7}}));
}

}  // namespace
}  // namespace lockstep::train
