// From what Group's collectives are called with to operations that follow a schedule.
#pragma once

#include "comm/communicator.h"
#include "comm/scheduled.h"

#include <optional>
#include <vector>

namespace lockstep::comm {

// One span of each collective on this rank, after its arguments were checked.
ScheduledPart in_place(const Span& data);  // broadcast
ScheduledPart all_reduced(const Span& data, std::optional<Dtype> round_to);
ScheduledPart reduced(const Span& data, std::optional<Dtype> round_to, bool is_root);
ScheduledPart reduce_scattered(const Span& input, const Span& output,
                               std::optional<Dtype> round_to);
ScheduledPart gathered(const Span& block, const Span& whole, int rank, int ranks);
ScheduledPart scattered(const Span& whole, const Span& block, int rank, int ranks);
// What a rank that is not root has of gather and scatter; `count`: of the whole.
ScheduledPart own_block(const Span& block, std::int64_t count);
ScheduledPart exchanged(const Span& input, const Span& output, int rank, int ranks);

struct Reducing {
  Reduction reduction = {};
  OnReduced on_reduced = {};
};

// Issues what the fingerprint says, by its algorithm. Throws UsageError, before anything is issued,
// where the algorithm has no schedule for it (require_schedule()).
Work issue_scheduled(Communicator& group, const Fingerprint& fingerprint,
                     std::vector<ScheduledPart> parts, Reducing reducing = {});

}  // namespace lockstep::comm
