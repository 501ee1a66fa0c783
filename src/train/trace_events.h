// One rank's part of a trace in the Trace Event Format that Perfetto and chrome://tracing open:
// what the rank computed, which buckets it exchanged, when it waited.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

// Nanoseconds of CLOCK_MONOTONIC, one clock for all processes of a host.
struct TraceSpan {
  std::string name;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bytes = -1;  // shown unless negative
};

// Values at one moment, drawn on top of each other.
struct TraceCounter {
  std::string name;
  std::int64_t at_ns = 0;
  std::vector<std::pair<std::string, std::int64_t>> series;
};

struct RankTrace {
  std::vector<TraceSpan> compute;        // nested: what begins inside another ends inside it
  std::vector<TraceSpan> communication;  // may overlap
  std::vector<TraceSpan> waiting;        // neither nests nor overlaps
  std::vector<TraceCounter> counters = {};
};

// The earliest begin or counter; INT64_MAX without any.
std::int64_t first_begin_ns(const RankTrace& trace);

// The events as JSON objects with commas between them. The rank is a process of the trace; its
// lanes are "compute", "waiting" and as many "communication" as buckets overlap. Times count from
// `origin_ns`.
std::string trace_events(int rank, const RankTrace& trace, std::int64_t origin_ns);

// The whole file around the ranks' events.
std::string trace_json(const std::vector<std::string>& events_of_ranks);

}  // namespace lockstep::train
