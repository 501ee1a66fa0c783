#include "plan/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace lockstep::plan {
namespace {

TEST(Timeline, a_chain_adds_up) {
  const std::vector<Task> tasks{{.seconds = 2},
                                {.kind = TaskKind::backward, .seconds = 3, .after = {0}},
                                {.kind = TaskKind::update, .seconds = 1, .after = {1}}};
  const StepTime time = simulate(tasks, {.spans = true});
  EXPECT_EQ(time.step_s, 6);
  EXPECT_EQ(time.compute_s, 6);
  EXPECT_EQ(time.exposed_s, 0);
  ASSERT_EQ(time.spans.size(), 3u);
  EXPECT_EQ(time.spans[1].begin_s, 2);
  EXPECT_EQ(time.spans[1].end_s, 5);
}

// Two buckets, the first hidden behind the rest of backward, the second exposed.
TEST(Timeline, communication_hides_behind_computation) {
  const std::vector<Task> tasks{
      {.kind = TaskKind::backward, .seconds = 4},
      {.kind = TaskKind::backward, .seconds = 4, .after = {0}},
      {.kind = TaskKind::all_reduce, .lane = Lane::inside, .seconds = 3, .after = {0}},
      {.kind = TaskKind::all_reduce, .lane = Lane::inside, .seconds = 3, .after = {1}},
      {.kind = TaskKind::update, .seconds = 1, .after = {2, 3}}};
  const StepTime time = simulate(tasks, {.spans = true});
  EXPECT_EQ(time.step_s, 8 + 3 + 1);
  EXPECT_EQ(time.exposed_s, 3);
  EXPECT_EQ(time.communication_s, 6);
  const auto wait = std::ranges::find(time.spans, TaskKind::wait, &Span::kind);
  ASSERT_NE(wait, time.spans.end());
  EXPECT_EQ(wait->begin_s, 8);
  EXPECT_EQ(wait->end_s, 11);
}

TEST(Timeline, gathers_overtake_reductions) {
  const std::vector<Task> tasks{
      {.kind = TaskKind::backward, .seconds = 1},
      {.kind = TaskKind::reduce, .lane = Lane::inside, .seconds = 5, .after = {0}},
      {.kind = TaskKind::gather, .lane = Lane::inside, .seconds = 2, .after = {0}},
      {.kind = TaskKind::backward, .seconds = 1, .after = {0, 2}}};
  const StepTime time = simulate(tasks, {.spans = true});
  EXPECT_EQ(time.step_s, 8);
  for (const Span& span : time.spans) {
    EXPECT_TRUE(span.kind != TaskKind::reduce || span.begin_s == 3);
  }
}

TEST(Timeline, one_slow_rank_holds_up_all) {
  const std::vector<Task> tasks{
      {.kind = TaskKind::backward, .seconds = 4},
      {.kind = TaskKind::all_reduce, .lane = Lane::inside, .seconds = 1, .after = {0}},
      {.kind = TaskKind::update, .seconds = 1, .after = {0, 1}}};
  EXPECT_EQ(simulate(tasks, {}).step_s, 6);
  const StepTime slow = simulate(tasks, {.slowest = 1.5});
  EXPECT_EQ(slow.step_s, 6 + 1 + 1.5);
  EXPECT_EQ(slow.compute_s, 5) << "of an ordinary rank";
  EXPECT_EQ(slow.exposed_s, 3.5);
  EXPECT_EQ(simulate(tasks, {.slowest = 1.5, .alone = true}).step_s, 6 + 1 + 1.5);
}

// The naive one: every rank by itself, second by second.
class SecondBySecond {
 public:
  SecondBySecond(const std::vector<Task>& tasks, int ranks, int slowest)
      : tasks_(tasks), ranks_(ranks), slowest_(slowest) {}

  int run() {
    int now = 0;
    while (ended_.size() < work_count()) {
      for (auto at = left_.begin(); at != left_.end();) {
        at->second == now ? (ended_.insert(*at), at = left_.erase(at)) : ++at;
      }
      if (ended_.size() == work_count()) {
        break;
      }
      for (int rank = 0; rank < ranks_; ++rank) {
        start(Lane::compute, rank, now);
      }
      start(Lane::inside, 0, now);
      start(Lane::between, 0, now);
      ++now;
    }
    return now;
  }

 private:
  using Key = std::pair<std::size_t, int>;  // task, rank; communication belongs to rank 0

  bool computes(std::size_t task) const { return tasks_[task].lane == Lane::compute; }
  std::size_t work_count() const {
    std::size_t count = 0;
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      count += computes(task) ? static_cast<std::size_t>(ranks_) : 1;
    }
    return count;
  }
  bool is_ready(std::size_t task, int rank) const {
    for (const std::size_t before : tasks_[task].after) {
      for (int other = 0; other < (computes(before) ? ranks_ : 1); ++other) {
        const bool concerns = !computes(task) || !computes(before) || other == rank;
        if (concerns && !ended_.contains({before, other})) {
          return false;
        }
      }
    }
    return true;
  }
  bool busy(Lane lane, int rank) const {
    return std::ranges::any_of(left_, [&](const auto& one) {
      return tasks_[one.first.first].lane == lane && one.first.second == rank;
    });
  }
  void start(Lane lane, int rank, int now) {
    if (busy(lane, rank)) {
      return;
    }
    for (const bool gathers : {true, false}) {
      for (std::size_t task = 0; task < tasks_.size(); ++task) {
        const Key key{task, rank};
        const bool fits =
            tasks_[task].lane == lane && (tasks_[task].kind == TaskKind::gather) == gathers;
        if (fits && !ended_.contains(key) && is_ready(task, rank)) {
          const bool slow = lane == Lane::compute && rank == ranks_ - 1;
          left_[key] = now + static_cast<int>(tasks_[task].seconds) * (slow ? slowest_ : 1);
          return;
        }
      }
    }
  }

  const std::vector<Task>& tasks_;
  int ranks_;
  int slowest_;
  std::map<Key, int> left_;  // running, until when
  std::map<Key, int> ended_;
};

std::vector<Task> random_tasks(std::mt19937& random) {
  std::vector<Task> tasks;
  std::size_t last = 0;
  bool any = false;
  for (std::size_t i = 0; i < 14; ++i) {
    Task task;
    task.seconds = static_cast<double>(1 + random() % 5);
    task.lane = static_cast<Lane>(random() % 3);
    if (task.lane == Lane::compute) {
      if (any) {
        task.after.push_back(last);
      }
      last = i;
      any = true;
    } else {
      task.kind = random() % 2 == 0 ? TaskKind::gather : TaskKind::reduce;
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (random() % 5 == 0) {
        task.after.push_back(before);
      }
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

TEST(Timeline, equals_every_rank_simulated_second_by_second) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Task> tasks = random_tasks(random);
    for (const int slowest : {1, 3}) {
      SecondBySecond naive(tasks, 3, slowest);
      EXPECT_EQ(simulate(tasks, {.slowest = static_cast<double>(slowest)}).step_s, naive.run())
          << "round " << round << ", slowest " << slowest;
    }
  }
}

TEST(Timeline, nothing_takes_no_time) { EXPECT_EQ(simulate({}, {.spans = true}).step_s, 0); }

}  // namespace
}  // namespace lockstep::plan
