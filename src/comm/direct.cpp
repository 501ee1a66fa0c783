#include "comm/direct.h"

#include "base/range.h"
#include "comm/copy.h"
#include "comm/reduce_kernels.h"

#include <algorithm>
#include <array>

namespace lockstep::comm {
namespace {

std::int64_t chunk_elements(Dtype dtype) { return DirectOperation::kChunkBytes / size_of(dtype); }

// Calls function(chunk) for the chunks of `range`, each starting on a granule from its begin.
template <class Function>
void for_each_chunk(Range range, Dtype dtype, Function function) {
  for (std::int64_t at = range.begin; at < range.end; at += chunk_elements(dtype)) {
    function(Range{at, std::min(range.end, at + chunk_elements(dtype))});
  }
}

ReduceTask task_of(Dtype dtype, std::optional<Dtype> round_to, const Reduction& reduction) {
  ReduceTask task;
  task.dtype = dtype;
  task.op = reduction.op;
  if (reduction.scale) {
    task.scale = reduction.scale;
  }
  task.round_to = round_to;
  return task;
}

bool changes_nothing(const ReduceTask& task, int ranks) {
  return ranks == 1 && !task.scale && !task.round_to;
}

}  // namespace

void reduce_block(const BlockReduction& block, const Reduction& reduction,
                  const OnReduced& on_reduced) {
  std::vector<const void*> sources(block.sources.size());
  std::vector<std::byte> shown;  // a chunk of a result that nobody keeps
  ReduceTask task = task_of(block.dtype, block.round_to, reduction);
  task.widen = block.output.dtype != block.dtype;
  for_each_chunk({0, block.elements.size()}, block.dtype, [&](Range chunk) {
    for (std::size_t r = 0; r < sources.size(); ++r) {
      sources[r] = block.sources[r] + chunk.begin * size_of(block.dtype);
    }
    std::array<void*, 1> destination{};
    if (block.output.data != nullptr) {
      destination[0] =
          static_cast<std::byte*>(block.output.data) + chunk.begin * size_of(block.output.dtype);
    } else {
      shown.resize(static_cast<std::size_t>(chunk.size() * size_of(block.output.dtype)));
      destination[0] = shown.data();
    }
    task.sources = sources;
    task.destinations = destination;
    task.count = chunk.size();
    reduce(task);
    if (on_reduced) {
      on_reduced(block.part, block.elements.begin + chunk.begin, chunk.size(), destination[0]);
    }
  });
}

DirectAllReduce::DirectAllReduce(const Fingerprint& fingerprint, int rank, int ranks,
                                 std::vector<DirectPart> parts, const Reduction& reduction,
                                 OnReduced on_reduced)
    : DirectOperation(fingerprint, rank, ranks),
      parts_(std::move(parts)),
      reduction_(reduction),
      on_reduced_(std::move(on_reduced)) {}

bool DirectAllReduce::run(std::int64_t, Traffic& traffic) {
  std::vector<const void*> sources(static_cast<std::size_t>(ranks_));
  std::vector<void*> destinations(static_cast<std::size_t>(ranks_));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const DirectPart& part = parts_[i];
    ReduceTask task = task_of(part.span.dtype, part.round_to, reduction_);
    const Range block = block_of(part.span.count, ranks_, rank_, kGranule);
    for_each_chunk(block, part.span.dtype, [&](Range chunk) {
      for (int r = 0; r < ranks_; ++r) {
        destinations[static_cast<std::size_t>(r)] = part.at(r, chunk.begin);
        sources[static_cast<std::size_t>(r)] = part.at(r, chunk.begin);
      }
      task.sources = sources;
      task.destinations = destinations;
      task.count = chunk.size();
      if (!changes_nothing(task, ranks_)) {
        reduce(task);
      }
      if (on_reduced_) {
        on_reduced_(i, chunk.begin, chunk.size(), part.at(rank_, chunk.begin));
      }
    });
    const std::int64_t moved = (ranks_ - 1) * block.size() * size_of(part.span.dtype);
    traffic.received += moved;
    traffic.sent += moved;
  }
  return true;
}

DirectReduceScatter::DirectReduceScatter(const Fingerprint& fingerprint, int rank, int ranks,
                                         std::vector<Part> parts, const Reduction& reduction,
                                         OnReduced on_reduced)
    : DirectOperation(fingerprint, rank, ranks),
      parts_(std::move(parts)),
      reduction_(reduction),
      on_reduced_(std::move(on_reduced)) {}

bool DirectReduceScatter::run(std::int64_t, Traffic& traffic) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& [input, output] = parts_[i];
    const Range elements = block_of(input.span.count, ranks_, rank_);
    BlockReduction block{.part = i,
                         .elements = elements,
                         .dtype = input.span.dtype,
                         .round_to = input.round_to,
                         .sources = {},
                         .output = output};
    for (int r = 0; r < ranks_; ++r) {
      block.sources.push_back(input.at(r, elements.begin));
    }
    reduce_block(block, reduction_, on_reduced_);
    traffic.received += (ranks_ - 1) * elements.size() * size_of(input.span.dtype);
  }
  return true;
}

bool DirectAllGather::run(std::int64_t, Traffic& traffic) {
  const Range block = block_of(data_.span.count, ranks_, rank_);
  const std::int64_t element = size_of(data_.span.dtype);
  for_each_chunk(block, data_.span.dtype, [&](Range chunk) {
    for (int distance = 1; distance < ranks_; ++distance) {
      copy_bytes(data_.at((rank_ + distance) % ranks_, chunk.begin), data_.at(rank_, chunk.begin),
                 chunk.size() * element);
    }
  });
  traffic.sent += (ranks_ - 1) * block.size() * element;
  return true;
}

bool DirectBroadcast::run(std::int64_t, Traffic& traffic) {
  if (rank_ == root_) {
    return true;
  }
  const std::int64_t element = size_of(data_.span.dtype);
  for_each_chunk({0, data_.span.count}, data_.span.dtype, [&](Range chunk) {
    copy_bytes(data_.at(rank_, chunk.begin), data_.at(root_, chunk.begin), chunk.size() * element);
  });
  traffic.received += data_.span.bytes();
  return true;
}

}  // namespace lockstep::comm
