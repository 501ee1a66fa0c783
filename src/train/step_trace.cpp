#include "train/step_trace.h"

#include "base/invariant.h"
#include "comm/together.h"

#include <ATen/record_function.h>

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

using Clock = std::chrono::steady_clock;

// LibTorch calls plain functions, so where they record can't live in an object of ours.
thread_local std::vector<TraceSpan>* recording = nullptr;

struct Begun final : at::ObserverContext {
  explicit Begun(Clock::time_point now) : begin(now) {}
  Clock::time_point begin;
};

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction&) {
  return std::make_unique<Begun>(Clock::now());
}

void operator_ends(const at::RecordFunction& function, at::ObserverContext* context) {
  if (recording != nullptr && context != nullptr) {
    recording->push_back({function.name(), nanoseconds(static_cast<Begun*>(context)->begin),
                          nanoseconds(Clock::now())});
  }
}

}  // namespace

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

StepTrace::StepTrace() {
  LOCKSTEP_INVARIANT(recording == nullptr, ==, true);
  recording = &spans_.compute;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(operator_begins, operator_ends)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                   at::RecordScope::USER_SCOPE}));
}

StepTrace::~StepTrace() { stop(); }

void StepTrace::stop() {
  if (const std::uint64_t callback = std::exchange(callback_, 0); callback != 0) {
    at::removeCallback(callback);
    recording = nullptr;
  }
}

void StepTrace::part(std::string name, TimeSpan time) {
  spans_.compute.push_back({std::move(name), nanoseconds(time.begin), nanoseconds(time.end)});
}

void StepTrace::exchanged(const ExchangeSpan& span) {
  spans_.communication.push_back({std::string(span.name), nanoseconds(span.time.begin),
                                  nanoseconds(span.time.end), span.bytes});
}

void StepTrace::exposed(TimeSpan time) {
  spans_.waiting.push_back({"waiting", nanoseconds(time.begin), nanoseconds(time.end)});
}

std::string gather_trace(Group& group, const RankTrace& mine) {
  std::int64_t origin_ns = first_begin_ns(mine);
  group.all_reduce(std::span(&origin_ns, 1), {.op = ReduceOp::min, .name = "trace's origin"})
      .wait();
  const std::vector<std::string> events =
      comm::gather_texts(group, trace_events(group.rank(), mine, origin_ns), "trace");
  return group.rank() == 0 ? trace_json(events) : std::string();
}

}  // namespace lockstep::train
