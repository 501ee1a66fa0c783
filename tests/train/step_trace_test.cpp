#include "train/step_trace.h"

#include "support/ranks.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include <algorithm>
#include <string>

namespace lockstep::train {
namespace {

using nlohmann::json;

const TraceSpan* find(const RankTrace& trace, const std::string& name) {
  const auto found = std::ranges::find(trace.compute, name, &TraceSpan::name);
  return found == trace.compute.end() ? nullptr : &*found;
}

TEST(StepTrace, NamesTheOperatorsOfForwardAndBackward) {
  const auto x = torch::ones({4, 4}, torch::requires_grad());
  StepTrace trace;
  torch::mm(x, x).sum().backward();
  trace.stop();
  const std::size_t recorded = trace.spans().compute.size();
  torch::mm(x, x);
  EXPECT_EQ(trace.spans().compute.size(), recorded) << "stopped";
  ASSERT_NE(find(trace.spans(), "aten::mm"), nullptr);
  EXPECT_TRUE(std::ranges::any_of(trace.spans().compute, [](const TraceSpan& span) {
    return span.name.find("MmBackward0") != std::string::npos;
  }));
  for (const TraceSpan& span : trace.spans().compute) {
    EXPECT_LE(span.begin_ns, span.end_ns) << span.name;
  }
}

TEST(StepTrace, KeepsWhatItIsTold) {
  const auto now = std::chrono::steady_clock::now();
  StepTrace trace;
  trace.part("forward", {now, now + std::chrono::microseconds(3)});
  trace.exposed({now, now + std::chrono::nanoseconds(5)});
  trace.exchanged({"bucket 0", 128, {now, now + std::chrono::nanoseconds(7)}});
  ASSERT_NE(find(trace.spans(), "forward"), nullptr);
  EXPECT_EQ(find(trace.spans(), "forward")->end_ns - find(trace.spans(), "forward")->begin_ns,
            3000);
  ASSERT_EQ(trace.spans().communication.size(), 1u);
  EXPECT_EQ(trace.spans().communication[0].name, "bucket 0");
  EXPECT_EQ(trace.spans().communication[0].bytes, 128);
  ASSERT_EQ(trace.spans().waiting.size(), 1u);
  EXPECT_EQ(trace.spans().waiting[0].end_ns - trace.spans().waiting[0].begin_ns, 5);
}

TEST(GatherTrace, RankZeroGetsAllOnOneClock) {
  const auto results = test::run_ranks(3, [](Group& group) {
    RankTrace mine;
    for (int i = 0; i <= group.rank(); ++i) {  // parts of different sizes
      mine.waiting.push_back({"waiting", 1000 * (group.rank() + 1) + i, 9000});
    }
    const std::string text = gather_trace(group, mine);
    if (group.rank() != 0) {
      return std::vector<double>{text.empty() ? 1.0 : 0.0};
    }
    std::vector<double> begins;
    const json trace = json::parse(text);
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "X") {
        begins.push_back(event["ts"].get<double>());
      }
    }
    return begins;
  });
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[0].values, (std::vector<double>{0, 1, 1.001, 2, 2.001, 2.002}));
  EXPECT_EQ(results[1].values, std::vector<double>{1});
  EXPECT_EQ(results[2].values, std::vector<double>{1});
}

}  // namespace
}  // namespace lockstep::train
