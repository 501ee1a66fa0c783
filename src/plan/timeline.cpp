#include "plan/timeline.h"

#include "base/invariant.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>

namespace lockstep::plan {
namespace {

// Kinds of rank.
constexpr std::size_t kOrdinary = 0;
constexpr std::size_t kSlow = 1;
constexpr std::size_t kLanes = 4;  // compute of each kind, inside, between

// A task as one kind of rank, or all of them, go through it.
struct Node {
  std::size_t task = 0;
  std::size_t lane = 0;
  double seconds = 0;
  std::size_t waits_for = 0;
  double begin_s = 0;
  double end_s = 0;
};

struct Ended {
  double at;
  std::size_t node;
  bool operator>(const Ended& other) const {
    return std::tie(at, node) > std::tie(other.at, other.node);
  }
};

// What comes first when a lane has a choice.
struct Ready {
  bool later;  // not a gather
  std::size_t node;
  bool operator>(const Ready& other) const {
    return std::tie(later, node) > std::tie(other.later, other.node);
  }
};

template <class T>
using Smallest = std::priority_queue<T, std::vector<T>, std::greater<T>>;

class Simulation {
 public:
  Simulation(const std::vector<Task>& tasks, const Pace& pace) : tasks_(tasks), pace_(pace) {
    const std::size_t kinds = pace.slowest > 1 && !pace.alone ? 2 : 1;
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      add(task, kinds);
    }
  }

  StepTime run() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (nodes_[node].waits_for == 0) {
        make_ready(node);
      }
    }
    start_all();
    while (!ended_.empty()) {
      now_ = ended_.top().at;
      while (!ended_.empty() && ended_.top().at == now_) {
        const std::size_t node = ended_.top().node;
        ended_.pop();
        end(node);
      }
      start_all();
    }
    LOCKSTEP_INVARIANT(done_, ==, nodes_.size());
    return result();
  }

 private:
  void add(std::size_t task, std::size_t kinds) {
    const Task& one = tasks_[task];
    const bool computes = one.lane == Lane::compute;
    first_.push_back(nodes_.size());
    for (std::size_t kind = 0; kind < (computes ? kinds : 1); ++kind) {
      const double factor = kind == kSlow || pace_.alone ? pace_.slowest : 1.0;
      nodes_.push_back({.task = task,
                        .lane = computes ? kind : 1 + static_cast<std::size_t>(one.lane),
                        .seconds = one.seconds * (computes ? factor : 1.0)});
      next_.emplace_back();
      for (const std::size_t before : one.after) {
        LOCKSTEP_INVARIANT(before, <, task);
        wait_for(nodes_.size() - 1, before, computes, kind);
      }
    }
    count_.push_back(nodes_.size() - first_.back());
  }

  // A computation waits for its own kind of rank, a communication for all.
  void wait_for(std::size_t node, std::size_t before, bool computes, std::size_t kind) {
    for (std::size_t i = 0; i < count_[before]; ++i) {
      if (computes && count_[before] > 1 && i != kind) {
        continue;
      }
      next_[first_[before] + i].push_back(node);
      ++nodes_[node].waits_for;
    }
  }

  void make_ready(std::size_t node) {
    const bool gathers = tasks_[nodes_[node].task].kind == TaskKind::gather;
    ready_[nodes_[node].lane].push({!gathers, node});
  }

  void start_all() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (busy_[lane] || ready_[lane].empty()) {
        continue;
      }
      Node& node = nodes_[ready_[lane].top().node];
      node.begin_s = now_;
      node.end_s = now_ + node.seconds;
      ended_.push({node.end_s, ready_[lane].top().node});
      ready_[lane].pop();
      busy_[lane] = true;
    }
  }

  void end(std::size_t node) {
    busy_[nodes_[node].lane] = false;
    ++done_;
    for (const std::size_t next : next_[node]) {
      if (--nodes_[next].waits_for == 0) {
        make_ready(next);
      }
    }
  }

  Span span_of(const Node& node) const {
    const Task& task = tasks_[node.task];
    return {task.kind, task.lane, task.part, task.micro_batch, node.begin_s, node.end_s};
  }

  StepTime result() const {
    StepTime time;
    time.step_s = now_;
    std::vector<Span> spans;
    for (const Node& node : nodes_) {
      if (node.lane != kSlow) {
        spans.push_back(span_of(node));
      }
    }
    std::ranges::stable_sort(spans, {}, &Span::begin_s);
    double computed_to = 0;
    double communicated_to = 0;
    for (const Span& span : spans) {
      const bool computes = span.lane == Lane::compute;
      double& busy = computes ? time.compute_s : time.communication_s;
      double& to = computes ? computed_to : communicated_to;
      if (computes && span.begin_s > to && pace_.spans) {
        time.spans.push_back(
            {TaskKind::wait, Lane::compute, 0, span.micro_batch, to, span.begin_s});
      }
      busy += std::max(0.0, span.end_s - std::max(to, span.begin_s));
      to = std::max(to, span.end_s);
      if (pace_.spans) {
        time.spans.push_back(span);
      }
    }
    if (pace_.spans && time.step_s > computed_to) {
      time.spans.push_back({TaskKind::wait, Lane::compute, 0, 0, computed_to, time.step_s});
    }
    std::ranges::stable_sort(time.spans, {}, &Span::begin_s);
    time.exposed_s = time.step_s - time.compute_s;
    return time;
  }

  const std::vector<Task>& tasks_;
  const Pace& pace_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::size_t>> next_;  // by node: who waits for it
  std::vector<std::size_t> first_;              // by task: its first node
  std::vector<std::size_t> count_;              // and how many it has
  std::array<Smallest<Ready>, kLanes> ready_;
  std::array<bool, kLanes> busy_{};
  Smallest<Ended> ended_;
  double now_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

StepTime simulate(const std::vector<Task>& tasks, const Pace& pace) {
  return Simulation(tasks, pace).run();
}

}  // namespace lockstep::plan
