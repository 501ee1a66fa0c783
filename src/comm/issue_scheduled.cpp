#include "comm/issue_scheduled.h"

#include "base/range.h"

#include <algorithm>
#include <utility>

namespace lockstep::comm {
namespace {

std::byte* bytes_at(const Span& span, std::int64_t element) {
  return static_cast<std::byte*>(span.data) + element * size_of(span.dtype);
}

ScheduledPart part_of_whole(const Span& whole) {
  ScheduledPart part;
  part.count = whole.count;
  part.dtype = whole.dtype;
  part.result = whole.dtype;
  return part;
}

}  // namespace

ScheduledPart in_place(const Span& data) {
  ScheduledPart part = part_of_whole(data);
  part.results = bytes_at(data, 0);
  return part;
}

ScheduledPart all_reduced(const Span& data, std::optional<Dtype> round_to) {
  ScheduledPart part = in_place(data);
  part.granule = kGranule;
  part.leaves = part.results;
  part.round_to = round_to;
  return part;
}

ScheduledPart reduced(const Span& data, std::optional<Dtype> round_to, bool is_root) {
  ScheduledPart part = all_reduced(data, round_to);
  if (!is_root) {
    part.results = nullptr;
  }
  return part;
}

ScheduledPart reduce_scattered(const Span& input, const Span& output,
                               std::optional<Dtype> round_to) {
  ScheduledPart part = part_of_whole(input);
  part.leaves = bytes_at(input, 0);
  part.result = output.dtype;
  part.block = bytes_at(output, 0);
  part.round_to = round_to;
  return part;
}

ScheduledPart gathered(const Span& block, const Span& whole, int rank, int ranks) {
  ScheduledPart part = in_place(whole);
  part.before = {bytes_at(whole, block_of(whole.count, ranks, rank).begin), bytes_at(block, 0),
                 block.bytes()};
  return part;
}

ScheduledPart scattered(const Span& whole, const Span& block, int rank, int ranks) {
  ScheduledPart part = in_place(whole);
  part.after = {bytes_at(block, 0), bytes_at(whole, block_of(whole.count, ranks, rank).begin),
                block.bytes()};
  return part;
}

ScheduledPart own_block(const Span& block, std::int64_t count) {
  ScheduledPart part = part_of_whole(block);
  part.count = count;
  part.block = bytes_at(block, 0);
  return part;
}

ScheduledPart exchanged(const Span& input, const Span& output, int rank, int ranks) {
  ScheduledPart part = in_place(input);
  part.leaves = part.results;
  part.results = bytes_at(output, 0);
  part.transposed = true;
  const Range own = block_of(input.count, ranks, rank);
  part.before = {bytes_at(output, rank * own.size()), bytes_at(input, own.begin),
                 own.size() * size_of(input.dtype)};
  return part;
}

Work issue_scheduled(Communicator& group, const Fingerprint& fingerprint,
                     std::vector<ScheduledPart> parts, Reducing reducing) {
  Schedule schedule =
      schedule_of(fingerprint.algorithm, {.kind = fingerprint.kind,
                                          .ranks = group.size(),
                                          .rank = group.rank(),
                                          .root = std::max(0, fingerprint.root),
                                          .ranks_per_host = group.ranks_per_host()});
  return group.issue(std::make_shared<ScheduledOperation>(
      ScheduledOperation::Call{fingerprint, std::move(schedule), std::move(parts),
                               reducing.reduction, std::move(reducing.on_reduced)},
      group.transport(), group.rank(), group.size()));
}

}  // namespace lockstep::comm
