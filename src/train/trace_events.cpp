#include "train/trace_events.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <string_view>

namespace lockstep::train {
namespace {

// Of a process; behind them come the lanes of communication.
enum Lane : int { kCompute = 0, kWaiting = 1, kCommunication = 2 };

// Viewers take process and thread 0 for the idle task.
int process_of(int rank) { return rank + 1; }
int thread_of(int rank, int lane) { return process_of(rank) * 1000 + lane; }

std::string quoted(const std::string& text) {
  // Names come from users' modules: what is no UTF-8 is replaced.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds to the nanosecond, exactly.
std::string microseconds(std::int64_t nanoseconds) {
  const std::string fraction = std::to_string(1000 + nanoseconds % 1000);
  return std::to_string(nanoseconds / 1000) + "." + fraction.substr(1);
}

class Events {
 public:
  Events(int rank, std::int64_t origin_ns) : rank_(rank), origin_ns_(origin_ns) {}

  void name_process(const std::string& name) {
    add("\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":" + quoted(name) + "}", 0);
    add("\"ph\":\"M\",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" +
            std::to_string(rank_) + "}",
        0);
  }
  void name_lane(int lane, const std::string& name) {
    add("\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":" + quoted(name) + "}", lane);
    add("\"ph\":\"M\",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":" +
            std::to_string(lane) + "}",
        lane);
  }
  void span(const TraceSpan& span, std::string_view category, int lane) {
    const std::string bytes =
        span.bytes < 0 ? "" : ",\"args\":{\"bytes\":" + std::to_string(span.bytes) + "}";
    add("\"ph\":\"X\",\"cat\":\"" + std::string(category) + "\",\"name\":" + quoted(span.name) +
            ",\"ts\":" + microseconds(span.begin_ns - origin_ns_) +
            ",\"dur\":" + microseconds(span.end_ns - span.begin_ns) + bytes,
        lane);
  }
  void counter(const TraceCounter& counter) {
    std::string series;
    for (const auto& [name, value] : counter.series) {
      series += (series.empty() ? "" : ",") + quoted(name) + ":" + std::to_string(value);
    }
    add("\"ph\":\"C\",\"name\":" + quoted(counter.name) +
            ",\"ts\":" + microseconds(counter.at_ns - origin_ns_) + ",\"args\":{" + series + "}",
        kCompute);
  }
  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& fields, int lane) {
    text_ += text_.empty() ? "" : ",\n";
    text_ += "{\"pid\":" + std::to_string(process_of(rank_)) +
             ",\"tid\":" + std::to_string(thread_of(rank_, lane)) + "," + fields + "}";
  }

  int rank_;
  std::int64_t origin_ns_;
  std::string text_;
};

// By begin; of those that begin together the longest first, as it holds the others.
std::vector<TraceSpan> in_order(std::vector<TraceSpan> spans) {
  std::ranges::stable_sort(spans, [](const TraceSpan& a, const TraceSpan& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return spans;
}

// A lane shows one span at a time: each bucket takes the first that is free.
std::vector<int> lanes_of(const std::vector<TraceSpan>& spans) {
  std::vector<std::int64_t> free_from_ns;
  std::vector<int> lanes;
  for (const TraceSpan& span : spans) {
    const auto free = std::ranges::find_if(
        free_from_ns, [&](std::int64_t from_ns) { return from_ns <= span.begin_ns; });
    lanes.push_back(static_cast<int>(free - free_from_ns.begin()));
    if (free == free_from_ns.end()) {
      free_from_ns.push_back(span.end_ns);
    } else {
      *free = span.end_ns;
    }
  }
  return lanes;
}

void add_communication(Events& events, const std::vector<TraceSpan>& unordered) {
  const std::vector<TraceSpan> spans = in_order(unordered);
  const std::vector<int> lanes = lanes_of(spans);
  const int count = lanes.empty() ? 1 : *std::ranges::max_element(lanes) + 1;
  for (int lane = 0; lane < count; ++lane) {
    events.name_lane(kCommunication + lane,
                     "communication" + (lane == 0 ? "" : " " + std::to_string(lane + 1)));
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    events.span(spans[i], "communication", kCommunication + lanes[i]);
  }
}

}  // namespace

std::int64_t first_begin_ns(const RankTrace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto* spans : {&trace.compute, &trace.communication, &trace.waiting}) {
    for (const TraceSpan& span : *spans) {
      first = std::min(first, span.begin_ns);
    }
  }
  for (const TraceCounter& counter : trace.counters) {
    first = std::min(first, counter.at_ns);
  }
  return first;
}

std::string trace_events(int rank, const RankTrace& trace, std::int64_t origin_ns) {
  Events events(rank, origin_ns);
  events.name_process("rank " + std::to_string(rank));
  events.name_lane(kCompute, "compute");
  events.name_lane(kWaiting, "waiting");
  for (const TraceSpan& span : in_order(trace.compute)) {
    events.span(span, "compute", kCompute);
  }
  for (const TraceSpan& span : in_order(trace.waiting)) {
    events.span(span, "waiting", kWaiting);
  }
  add_communication(events, trace.communication);
  for (const TraceCounter& counter : trace.counters) {
    events.counter(counter);
  }
  return events.take();
}

std::string trace_json(const std::vector<std::string>& events_of_ranks) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"" LOCKSTEP_VERSION
                     "\",\"clock\":\"CLOCK_MONOTONIC\"},\"traceEvents\":[\n";
  for (std::size_t rank = 0; rank < events_of_ranks.size(); ++rank) {
    text += (rank == 0 ? "" : ",\n") + events_of_ranks[rank];
  }
  return text + "\n]}\n";
}

}  // namespace lockstep::train
