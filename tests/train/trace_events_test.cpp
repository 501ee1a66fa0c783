#include "train/trace_events.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace lockstep::train {
namespace {

using nlohmann::json;

json events_of(int rank, const RankTrace& trace, std::int64_t origin_ns) {
  return json::parse("[" + trace_events(rank, trace, origin_ns) + "]");
}

// The name of the lane that each span of a name lies in.
std::map<std::string, std::string> lanes_of(const json& events) {
  std::map<int, std::string> lanes;
  for (const json& event : events) {
    if (event["name"] == "thread_name") {
      lanes[event["tid"]] = event["args"]["name"];
    }
  }
  std::map<std::string, std::string> found;
  for (const json& event : events) {
    if (event["ph"] == "X") {
      found[event["name"]] = lanes.at(event["tid"]);
    }
  }
  return found;
}

TEST(TraceEvents, TellSpansInMicrosecondsFromTheOrigin) {
  const RankTrace trace{.compute = {{"aten::mm", 5'000'001'234, 5'000'003'000}},
                        .communication = {{"bucket 0", 5'000'001'000, 5'000'001'001, 64}},
                        .waiting = {}};
  EXPECT_EQ(first_begin_ns(trace), 5'000'001'000);
  const json events = events_of(1, trace, 5'000'000'000);
  json spans = json::array();
  for (const json& event : events) {
    EXPECT_EQ(event["pid"], 2);
    if (event["ph"] == "X") {
      spans.push_back(event);
    } else if (event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"], "rank 1");
    }
  }
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["name"], "aten::mm");
  EXPECT_EQ(spans[0]["ts"], 1.234);
  EXPECT_EQ(spans[0]["dur"], 1.766);
  EXPECT_FALSE(spans[0].contains("args"));
  EXPECT_EQ(spans[1]["ts"], 1.0);
  EXPECT_EQ(spans[1]["dur"], 0.001);
  EXPECT_EQ(spans[1]["args"]["bytes"], 64);
}

TEST(TraceEvents, OverlappingBucketsTakeLanesOfTheirOwn) {
  const RankTrace trace{
      .compute = {},
      .communication = {{"c", 30, 40}, {"a", 0, 20}, {"b", 10, 25}, {"d", 35, 50}, {"e", 40, 41}},
      .waiting = {{"waiting", 20, 22}}};
  const std::map<std::string, std::string> expected{
      {"a", "communication"},   {"b", "communication 2"}, {"c", "communication"},
      {"d", "communication 2"}, {"e", "communication"},   {"waiting", "waiting"}};
  EXPECT_EQ(lanes_of(events_of(0, trace, 0)), expected);
}

TEST(TraceEvents, TheHolderComesBeforeWhatItHolds) {
  const RankTrace trace{
      .compute = {{"inner", 10, 12}, {"outer", 10, 20}}, .communication = {}, .waiting = {}};
  std::vector<std::string> order;
  for (const json& event : events_of(0, trace, 0)) {
    if (event["ph"] == "X") {
      order.push_back(event["name"]);
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"outer", "inner"}));
}

TEST(TraceEvents, CountersBelongToTheirRank) {
  const RankTrace trace{.compute = {{"outer", 1'000, 2'000}},
                        .communication = {},
                        .waiting = {},
                        .counters = {{"memory", 500, {{"parameters", 12}, {"gradients", 34}}},
                                     {"memory", 1'500, {{"parameters", 56}, {"gradients", 78}}}}};
  EXPECT_EQ(first_begin_ns(trace), 500);
  json counters = json::array();
  for (const json& event : events_of(1, trace, 500)) {
    if (event["ph"] == "C") {
      EXPECT_EQ(event["pid"], 2);
      EXPECT_EQ(event["name"], "memory");
      counters.push_back(event);
    }
  }
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0]["ts"], 0.0);
  EXPECT_EQ(counters[0]["args"], (json{{"parameters", 12}, {"gradients", 34}}));
  EXPECT_EQ(counters[1]["ts"], 1.0);
  EXPECT_EQ(counters[1]["args"], (json{{"parameters", 56}, {"gradients", 78}}));
}

TEST(TraceEvents, AnyNameGivesValidJson) {
  const RankTrace trace{
      .compute = {{"a \"quote\" \\ \n \x01 \xff", 0, 1}}, .communication = {}, .waiting = {}};
  for (const json& event : events_of(0, trace, 0)) {
    if (event["ph"] == "X") {
      EXPECT_EQ(event["name"], "a \"quote\" \\ \n \x01 \xef\xbf\xbd");
    }
  }
}

TEST(TraceJson, HoldsTheEventsOfAllRanks) {
  const json trace = json::parse(trace_json({trace_events(0, {}, 0), trace_events(1, {}, 0)}));
  std::vector<std::string> ranks;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      ranks.push_back(event["args"]["name"]);
    }
  }
  EXPECT_EQ(ranks, (std::vector<std::string>{"rank 0", "rank 1"}));
  EXPECT_EQ(trace["otherData"]["clock"], "CLOCK_MONOTONIC");
  EXPECT_EQ(first_begin_ns({}), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace lockstep::train
