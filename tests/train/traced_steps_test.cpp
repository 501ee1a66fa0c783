#include "train/traced_steps.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
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
    if (steps.end(step)) {
      completed.push_back(step);
    }
  }
  EXPECT_EQ(completed, std::vector<std::int64_t>{3});
  EXPECT_EQ(parts_of(steps.spans()),
            (std::vector<std::string>{"forward", "backward", "update", "step 2", "forward",
                                      "backward", "update", "step 3"}));
}

TEST(TracedSteps, AnEmptyWindowRecordsNothing) {
  Group group = Group::alone();
  torch::nn::Linear model(2, 2);
  Parallel parallel(model, group, {.stage = Stage::single});
  TracedSteps steps({0, 0}, parallel);
  steps.begin(0);
  steps.at(Moment::after_forward);
  EXPECT_FALSE(steps.end(0));
  EXPECT_TRUE(steps.spans().compute.empty());
}

}  // namespace
}  // namespace lockstep::train
