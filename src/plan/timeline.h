// A discrete-event simulation of one step: tasks with durations on lanes that do one thing at a
// time, each beginning when what it waits for has ended. Pure.
//
// Ranks that are alike take the same time, so a world is two kinds of rank, ordinary ones and one
// slow one, however many there are: a computation runs on each kind by itself, a communication
// begins when every rank has come to it and ends for all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::plan {

enum class Lane : std::uint8_t { compute, inside, between };  // links inside and between hosts

enum class TaskKind : std::uint8_t {
  forward,
  backward,
  gather,  // a unit's parameters
  reduce,  // gradients into shards, or their replicas' sum
  all_reduce,
  decide,  // norm, clipping and skipping
  update,
  spread,  // updated parameters
  wait     // in the result: computation that has nothing to do yet
};

constexpr std::string_view name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::gather:
      return "gather";
    case TaskKind::reduce:
      return "reduce";
    case TaskKind::all_reduce:
      return "all_reduce";
    case TaskKind::decide:
      return "decide";
    case TaskKind::update:
      return "update";
    case TaskKind::spread:
      return "spread";
    case TaskKind::wait:
      return "wait";
  }
  return "?";
}

struct Task {
  TaskKind kind = TaskKind::forward;
  Lane lane = Lane::compute;
  double seconds = 0;     // on an ordinary rank
  std::int64_t part = 0;  // which unit or bucket
  std::int64_t micro_batch = 0;
  std::vector<std::size_t> after = {};  // tasks that must have ended: earlier ones of the list
};

struct Span {
  TaskKind kind = TaskKind::forward;
  Lane lane = Lane::compute;
  std::int64_t part = 0;
  std::int64_t micro_batch = 0;
  double begin_s = 0;
  double end_s = 0;
};

struct StepTime {
  double step_s = 0;
  double compute_s = 0;        // of an ordinary rank
  double communication_s = 0;  // while any link is busy
  double exposed_s = 0;        // step_s − compute_s: an ordinary rank computes nothing
  std::vector<Span> spans;     // of an ordinary rank, by begin; empty unless asked for
};

struct Pace {
  double slowest = 1;  // how much longer the slow rank computes; 1: none is slow
  bool alone = false;  // a world of one rank, which then is the slow one
  bool spans = false;  // return them
};

// When several communications wait for one lane, gathers come first, then the earlier of the list.
StepTime simulate(const std::vector<Task>& tasks, const Pace& pace);

}  // namespace lockstep::plan
