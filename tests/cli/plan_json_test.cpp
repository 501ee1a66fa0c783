#include "cli/plan_json.h"

#include "plan/queries.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;
using plan::answer;
using plan::PlanQuery;
using plan::query_of;

std::vector<std::string> keys_of(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

TEST(PlanJson, has_exactly_the_documented_keys) {
  const ordered_json json = plan_json(answer(query_of(8'000'000'000, 8)));
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys_of(json),
            (Keys{"parameters", "ranks", "stages", "smallest_stage", "smallest_ranks", "advice"}));
  ASSERT_EQ(json["stages"].size(), 6u);
  for (const ordered_json& stage : json["stages"]) {
    EXPECT_EQ(keys_of(stage), (Keys{"stage", "bytes", "sent", "floor_ms", "step_ms", "fits"}));
    EXPECT_EQ(keys_of(stage["bytes"]),
              (Keys{"parameters", "gradients", "optimizer", "transient", "activations", "total"}));
    EXPECT_TRUE(stage["bytes"]["total"].is_number_integer());
    EXPECT_TRUE(stage["sent"].is_number_integer());
    EXPECT_GT(stage["step_ms"].get<double>(), 0);
  }
  EXPECT_EQ(keys_of(json["smallest_ranks"]),
            (Keys{"single", "ddp", "zero1", "zero2", "zero3", "hybrid"}));
  EXPECT_TRUE(json["advice"].is_string());
}

TEST(PlanJson, carries_the_figures) {
  const ordered_json json = plan_json(answer(query_of(1'000'000'000, 8)));
  const ordered_json& zero2 = json["stages"][3];
  EXPECT_EQ(zero2["stage"], "zero2");
  EXPECT_EQ(zero2["bytes"]["total"], 3'750'000'000);
  EXPECT_EQ(zero2["bytes"]["parameters"], 2'000'000'000);
  EXPECT_EQ(zero2["bytes"]["gradients"], 250'000'000);
  EXPECT_EQ(zero2["bytes"]["optimizer"], 1'500'000'000);
  EXPECT_EQ(json["stages"][4]["sent"].get<double>() / json["stages"][1]["sent"].get<double>(), 1.5);
  EXPECT_EQ(json["smallest_stage"], "ddp");
}

TEST(PlanJson, what_there_is_not_is_null) {
  PlanQuery query = query_of(70'000'000'000, 8);
  query.algorithm = plan::Algorithm::tree;
  const ordered_json json = plan_json(answer(query));
  EXPECT_TRUE(json["smallest_stage"].is_null());
  EXPECT_TRUE(json["smallest_ranks"]["ddp"].is_null());
  EXPECT_EQ(json["smallest_ranks"]["zero3"], 14);
  EXPECT_TRUE(json["stages"][3]["step_ms"].is_null()) << "a tree has no shards";
  EXPECT_FALSE(json["stages"][1]["step_ms"].is_null());
}

TEST(PlanJson, the_page_gets_curves_and_the_timeline_too) {
  PlanQuery query = query_of(8'000'000'000, 16);
  query.curves = true;
  query.timeline = Stage::hybrid;
  const ordered_json json = plan_page_json(query, answer(query));
  EXPECT_EQ(json["hosts"], 2);
  EXPECT_EQ(json["hardware"]["name"], "round");
  EXPECT_EQ(json["curves"].size(), 6u);
  EXPECT_EQ(json["curves"][4]["points"][4]["ranks"], 16);
  std::set<std::string> lanes;
  for (const ordered_json& span : json["timeline"]) {
    lanes.insert(span["lane"]);
    EXPECT_LE(span["begin_ms"].get<double>(), span["end_ms"].get<double>());
  }
  EXPECT_EQ(lanes, (std::set<std::string>{"compute", "inside", "between"}));
  EXPECT_EQ(json["stages"][4]["smallest_ranks"], 2);
  EXPECT_EQ(json["reasons"].size(), answer(query).advice.size());
  EXPECT_NO_THROW((void)json.dump());
}

}  // namespace
}  // namespace lockstep::cli
