#include "train/traced_steps.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

std::vector<std::int64_t> window(std::int64_t first, std::int64_t steps) {
  const TraceWindow found = trace_window(first, steps);
  return {found.begin, found.end};
}

TEST(TraceWindow, IsFourStepsAfterSettingUp) {
  EXPECT_EQ(window(0, 20), (std::vector<std::int64_t>{2, 6}));
  EXPECT_EQ(window(10, 20), (std::vector<std::int64_t>{12, 16})) << "resumed at step 10";
}

TEST(TraceWindow, IsWhatAShortRunHas) {
  EXPECT_EQ(window(0, 4), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(window(0, 2), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(window(0, 1), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(window(0, 0), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(window(20, 20), (std::vector<std::int64_t>{20, 20}));
}

// The parts of a lane in the order of their ends, operators left out.
std::vector<std::string> parts_of(const RankTrace& trace) {
  std::vector<std::string> names;
  for (const TraceSpan& span : trace.compute) {
    if (span.name.find("::") == std::string::npos) {
      names.push_back(span.name);
    }
  }
  return names;
}

TEST(TracedSteps, RecordsTheWindowOnly) {
  Group group = Group::alone();
  torch::nn::Linear model(2, 2);
  Parallel parallel(model, group, {.stage = Stage::single});
  TracedSteps steps({2, 4}, parallel);
  std::vector<std::int64_t> completed;
  for (std::int64_t step = 0; step < 6; ++step) {
    steps.begin(step);
    steps.at(Moment::before_forward);
    torch::ones({2, 2}).add(1);
    steps.at(Moment::after_forward);
    steps.at(Moment::after_backward);
    EXPECT_EQ(steps.in_step(), step == 2 || step == 3);
    steps.at(Moment::after_update);
    if (steps.end(step)) {
      completed.push_back(step);
    }
  }
  EXPECT_EQ(completed, std::vector<std::int64_t>{3});
  EXPECT_EQ(parts_of(steps.spans()),
            (std::vector<std::string>{"forward", "backward", "update", "step 2", "forward",
                                      "backward", "update", "step 3"}));
}

TEST(TracedSteps, DrawsMemoryByCategoryAndWhatIsResidentWhereItIsKnown) {
  Group group = Group::alone();
  torch::nn::Linear model(2, 2);
  Parallel parallel(model, group, {.stage = Stage::single});
  TracedSteps steps({1, 2}, parallel);
  const plan::Ledger held{.parameters = 1, .gradients = 2, .optimizer = 3, .transient = 4};
  steps.memory({.held = held, .activations = 5, .activations_peak = 6, .resident = 7});
  steps.memory({.held = held, .activations = 0});
  const std::vector<TraceCounter> counters = steps.spans().counters;
  ASSERT_EQ(counters.size(), 3u);
  using Series = std::vector<std::pair<std::string, std::int64_t>>;
  EXPECT_EQ(counters[0].name, "memory");
  EXPECT_EQ(counters[0].series, (Series{{"parameters", 1},
                                        {"gradients", 2},
                                        {"optimizer", 3},
                                        {"transient", 4},
                                        {"activations", 5}}));
  EXPECT_EQ(counters[1].name, "resident");
  EXPECT_EQ(counters[1].series, (Series{{"pss", 7}}));
  EXPECT_EQ(counters[1].at_ns, counters[0].at_ns);
  EXPECT_EQ(counters[2].name, "memory");
  EXPECT_GE(counters[2].at_ns, counters[0].at_ns);
  EXPECT_GT(counters[0].at_ns, 0);
}

TEST(TracedSteps, AnEmptyWindowRecordsNothing) {
  Group group = Group::alone();
  torch::nn::Linear model(2, 2);
  Parallel parallel(model, group, {.stage = Stage::single});
  TracedSteps steps({0, 0}, parallel);
  steps.begin(0);
  steps.at(Moment::after_forward);
  steps.memory({.resident = 1});
  EXPECT_FALSE(steps.end(0));
  EXPECT_TRUE(steps.spans().compute.empty());
  EXPECT_TRUE(steps.spans().counters.empty());
}

}  // namespace
}  // namespace lockstep::train
