#include "comm/staged.h"

#include "comm/copy.h"
#include "comm/reduce_kernels.h"

#include <algorithm>
#include <array>

namespace lockstep::comm {
namespace {

std::int64_t stage_elements(Dtype dtype) { return Control::kStageBytes / size_of(dtype); }

std::int64_t block_elements(std::int64_t elements, int ranks) {
  return block_of(elements, ranks, 0).size();
}

// Elements of one destination's part of a stage, aligned where there is room for it.
std::int64_t part_elements(Dtype dtype, int ranks) {
  const std::int64_t part = stage_elements(dtype) / ranks;
  return part < kGranule ? part : part / kGranule * kGranule;
}

ReduceTask task_of(Dtype dtype, const Reduction& reduction) {
  ReduceTask task;
  task.dtype = dtype;
  task.op = reduction.op;
  task.scale = reduction.scale;
  task.round_to = reduction.round_to;
  return task;
}

}  // namespace

StagedOperation::StagedOperation(const Fingerprint& fingerprint, Control& control,
                                 const Shape& shape)
    : Operation(fingerprint),
      control_(control),
      elements_(shape.elements),
      chunk_elements_(shape.chunk),
      chunks_((shape.elements + shape.chunk - 1) / shape.chunk),
      depth_(shape.depth) {}

Range StagedOperation::range_of(std::int64_t chunk) const {
  return {std::min(elements_, chunk * chunk_elements_),
          std::min(elements_, (chunk + 1) * chunk_elements_)};
}

bool StagedOperation::run(std::int64_t step, Traffic& traffic) {
  if (step >= 2 && step - 2 < chunks_) {
    take_out(step - 2);
  }
  if (step >= 1 && step - 1 < chunks_) {
    work(step - 1, traffic);
  }
  if (step < chunks_) {
    fill(step);
  }
  return true;
}

StagedAllReduce::StagedAllReduce(const Fingerprint& fingerprint, Control& control, Span data,
                                 const Reduction& reduction)
    : StagedOperation(fingerprint, control, {data.count, stage_elements(data.dtype), 2}),
      data_(data),
      reduction_(reduction) {}

Range StagedAllReduce::own_block(std::int64_t chunk) const {
  return block_of(range_of(chunk).size(), ranks(), rank(), kGranule);
}

std::byte* StagedAllReduce::at(std::int64_t element) const {
  return static_cast<std::byte*>(data_.data) + element * size_of(data_.dtype);
}

void StagedAllReduce::fill(std::int64_t chunk) {
  const std::int64_t element = size_of(data_.dtype);
  const Range range = range_of(chunk);
  const Range own = own_block(chunk);
  std::byte* mine = stage(chunk, rank());
  copy_bytes(mine, at(range.begin), own.begin * element);
  copy_bytes(mine + own.end * element, at(range.begin + own.end),
             (range.size() - own.end) * element);
}

void StagedAllReduce::work(std::int64_t chunk, Traffic& traffic) {
  const Range own = own_block(chunk);
  const std::int64_t element = size_of(data_.dtype);
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (int r = 0; r < ranks(); ++r) {
    void* place =
        r == rank() ? at(range_of(chunk).begin + own.begin) : stage(chunk, r) + own.begin * element;
    sources.push_back(place);
    destinations.push_back(place);
  }
  ReduceTask task = task_of(data_.dtype, reduction_);
  task.sources = sources;
  task.destinations = destinations;
  task.count = own.size();
  reduce(task);
  traffic.received += (ranks() - 1) * own.size() * element;
  traffic.sent += (ranks() - 1) * own.size() * element;
}

void StagedAllReduce::take_out(std::int64_t chunk) {
  const std::int64_t element = size_of(data_.dtype);
  const Range range = range_of(chunk);
  const Range own = own_block(chunk);
  const std::byte* mine = stage(chunk, rank());
  copy_bytes(at(range.begin), mine, own.begin * element);
  copy_bytes(at(range.begin + own.end), mine + own.end * element,
             (range.size() - own.end) * element);
}

StagedReduceScatter::StagedReduceScatter(const Fingerprint& fingerprint, Control& control,
                                         Span input, Span output, const Reduction& reduction)
    : StagedOperation(fingerprint, control,
                      {block_elements(input.count, control.ranks()),
                       part_elements(input.dtype, control.ranks()), 1}),
      input_(input),
      output_(output),
      reduction_(reduction) {}

Range StagedReduceScatter::part_for(std::int64_t chunk, int rank) const {
  const Range block = block_of(input_.count, ranks(), rank);
  const Range range = range_of(chunk);
  return intersect(block, {block.begin + range.begin, block.begin + range.end});
}

std::byte* StagedReduceScatter::place(std::int64_t chunk, int from, int to) const {
  return stage(chunk, from) + to * chunk_elements() * size_of(input_.dtype);
}

void StagedReduceScatter::fill(std::int64_t chunk) {
  const std::int64_t element = size_of(input_.dtype);
  for (int distance = 1; distance < ranks(); ++distance) {
    const int to = (rank() + distance) % ranks();
    const Range part = part_for(chunk, to);
    copy_bytes(place(chunk, rank(), to),
               static_cast<const std::byte*>(input_.data) + part.begin * element,
               part.size() * element);
  }
}

void StagedReduceScatter::work(std::int64_t chunk, Traffic& traffic) {
  const std::int64_t element = size_of(input_.dtype);
  const Range part = part_for(chunk, rank());
  std::vector<const void*> sources;
  for (int r = 0; r < ranks(); ++r) {
    sources.push_back(r == rank()
                          ? static_cast<const std::byte*>(input_.data) + part.begin * element
                          : place(chunk, r, rank()));
  }
  const std::array<void*, 1> destination{static_cast<std::byte*>(output_.data) +
                                         range_of(chunk).begin * element};
  ReduceTask task = task_of(input_.dtype, reduction_);
  task.sources = sources;
  task.destinations = destination;
  task.count = part.size();
  reduce(task);
  traffic.received += (ranks() - 1) * part.size() * element;
}

StagedAllGather::StagedAllGather(const Fingerprint& fingerprint, Control& control, Span input,
                                 Span output)
    : StagedOperation(
          fingerprint, control,
          {block_elements(output.count, control.ranks()), stage_elements(output.dtype), 1}),
      input_(input),
      output_(output) {}

Range StagedAllGather::part_of(std::int64_t chunk, int rank) const {
  const Range block = block_of(output_.count, ranks(), rank);
  const Range range = range_of(chunk);
  return intersect(block, {block.begin + range.begin, block.begin + range.end});
}

std::byte* StagedAllGather::at(std::int64_t element) const {
  return static_cast<std::byte*>(output_.data) + element * size_of(output_.dtype);
}

void StagedAllGather::fill(std::int64_t chunk) {
  const std::int64_t element = size_of(output_.dtype);
  const Range part = part_of(chunk, rank());
  const auto* from = static_cast<const std::byte*>(input_.data) + range_of(chunk).begin * element;
  copy_bytes(stage(chunk, rank()), from, part.size() * element);
  copy_bytes(at(part.begin), from, part.size() * element);
}

void StagedAllGather::work(std::int64_t chunk, Traffic& traffic) {
  const std::int64_t element = size_of(output_.dtype);
  for (int distance = 1; distance < ranks(); ++distance) {
    const int from = (rank() + distance) % ranks();
    const Range part = part_of(chunk, from);
    copy_bytes(at(part.begin), stage(chunk, from), part.size() * element);
    traffic.received += part.size() * element;
  }
}

StagedBroadcast::StagedBroadcast(const Fingerprint& fingerprint, Control& control, Span data,
                                 int root)
    : StagedOperation(fingerprint, control, {data.count, stage_elements(data.dtype), 1}),
      data_(data),
      root_(root) {}

std::byte* StagedBroadcast::at(std::int64_t element) const {
  return static_cast<std::byte*>(data_.data) + element * size_of(data_.dtype);
}

void StagedBroadcast::fill(std::int64_t chunk) {
  if (rank() == root_) {
    const Range range = range_of(chunk);
    copy_bytes(stage(chunk, root_), at(range.begin), range.size() * size_of(data_.dtype));
  }
}

void StagedBroadcast::work(std::int64_t chunk, Traffic& traffic) {
  if (rank() != root_) {
    const Range range = range_of(chunk);
    copy_bytes(at(range.begin), stage(chunk, root_), range.size() * size_of(data_.dtype));
    traffic.received += range.size() * size_of(data_.dtype);
  }
}

}  // namespace lockstep::comm
