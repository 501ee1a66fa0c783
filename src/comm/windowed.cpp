#include "comm/windowed.h"

#include "base/invariant.h"
#include "comm/arguments.h"
#include "comm/direct.h"
#include "comm/schedule.h"
#include "lockstep/error.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep::comm {

WindowedReduceScatter::WindowedReduceScatter(const Fingerprint& fingerprint, int rank, int ranks,
                                             SymmetricSpan windows, std::vector<WindowedPart> parts,
                                             const Reduction& reduction, OnReduced on_reduced)
    : Operation(fingerprint),
      rank_(rank),
      ranks_(ranks),
      windows_(std::move(windows)),
      parts_(std::move(parts)),
      reduction_(reduction),
      on_reduced_(std::move(on_reduced)) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    cut(part);
  }
}

std::int64_t WindowedReduceScatter::window_bytes() const {
  return windows_.count / kWindows / kGranule * kGranule;
}

std::int64_t WindowedReduceScatter::columns_of(Dtype dtype) const {
  return window_bytes() / size_of(dtype) / ranks_ / kGranule * kGranule;
}

void WindowedReduceScatter::cut(std::size_t part) {
  const WindowedPart& all = parts_[part];
  const std::int64_t columns = columns_of(all.dtype);
  if (columns == 0) {
    throw UsageError("reduce_scatter: " + std::to_string(kWindows) + " windows in " +
                     std::to_string(windows_.count) + " bytes have no room for " +
                     std::to_string(kGranule) + " elements of each of " + std::to_string(ranks_) +
                     " ranks; allocate more");
  }
  const std::int64_t block = block_of(all.count, ranks_, 0).size();
  LOCKSTEP_INVARIANT(all.output.data != nullptr || on_reduced_ != nullptr, ==, true);
  LOCKSTEP_INVARIANT(all.output.count, ==, block_of(all.count, ranks_, rank_).size());
  for (std::int64_t begin = 0; begin < block; begin += columns) {
    pieces_.push_back({part, {begin, std::min(block, begin + columns)}});
  }
}

bool WindowedReduceScatter::run(std::int64_t step, Traffic& traffic) {
  const auto next = static_cast<std::size_t>(step);
  if (next > 0) {
    work(next - 1, traffic);
  }
  if (next < pieces_.size()) {
    fill(next, [&](int to) { return place(next, rank_, to); });
  }
  return true;
}

Range WindowedReduceScatter::elements_of(const Piece& piece, int rank) const {
  const Range block = block_of(parts_[piece.part].count, ranks_, rank);
  return intersect(block, {block.begin + piece.columns.begin, block.begin + piece.columns.end});
}

std::byte* WindowedReduceScatter::place(std::size_t piece, int from, int to) const {
  const Dtype dtype = parts_[pieces_[piece].part].dtype;
  return windows_.memory->part(from) + windows_.offset_bytes +
         static_cast<std::int64_t>(piece % kWindows) * window_bytes() +
         to * columns_of(dtype) * size_of(dtype);
}

template <class Place>
void WindowedReduceScatter::fill(std::size_t piece, Place place) {
  WindowedPart& part = parts_[pieces_[piece].part];
  for (int to = 0; to < ranks_; ++to) {
    const Range elements = elements_of(pieces_[piece], to);
    if (!elements.empty()) {
      part.fill(elements, place(to));
    }
  }
  if (piece + 1 == pieces_.size() || pieces_[piece + 1].part != pieces_[piece].part) {
    part.fill = nullptr;
  }
}

Span WindowedReduceScatter::output_of(const Piece& piece) const {
  Span output = parts_[piece.part].output;
  output.count = elements_of(piece, rank_).size();
  if (output.data != nullptr) {
    output.data =
        static_cast<std::byte*>(output.data) + piece.columns.begin * size_of(output.dtype);
  }
  return output;
}

void WindowedReduceScatter::work(std::size_t piece, Traffic& traffic) {
  const WindowedPart& part = parts_[pieces_[piece].part];
  const Range elements = elements_of(pieces_[piece], rank_);
  BlockReduction block{.part = pieces_[piece].part,
                       .elements = elements,
                       .dtype = part.dtype,
                       .round_to = std::nullopt,
                       .sources = {},
                       .output = output_of(pieces_[piece])};
  for (int from = 0; from < ranks_; ++from) {
    block.sources.push_back(place(piece, from, rank_));
  }
  reduce_block(block, reduction_, on_reduced_);
  traffic.received += (ranks_ - 1) * elements.size() * size_of(part.dtype);
}

bool WindowedMessages::run(std::int64_t, Traffic& traffic) {
  for (; piece_ < pieces_.size(); ++piece_) {
    if (running_ == nullptr) {
      running_ = begin(piece_);
    }
    if (!running_->run(0, traffic)) {
      return false;
    }
    running_.reset();
  }
  return true;
}

std::unique_ptr<ScheduledOperation> WindowedMessages::begin(std::size_t number) {
  const Piece& piece = pieces_[number];
  const WindowedPart& part = parts_[piece.part];
  LOCKSTEP_INVARIANT(part.count % ranks_, ==, 0);
  auto* const window = static_cast<std::byte*>(windows_.data());
  const std::int64_t columns = piece.columns.size();
  fill(number, [&](int to) { return window + to * columns * size_of(part.dtype); });
  const Span output = output_of(piece);
  ScheduledPart scheduled;
  scheduled.count = ranks_ * columns;
  scheduled.dtype = part.dtype;
  scheduled.result = output.dtype;
  scheduled.leaves = window;
  scheduled.block = static_cast<std::byte*>(output.data);
  // The schedule counts elements within the piece, the caller within the part.
  const std::int64_t offset = elements_of(piece, rank_).begin - rank_ * columns;
  OnReduced on_reduced;
  if (on_reduced_) {
    on_reduced = [this, index = piece.part, offset](std::size_t, std::int64_t first,
                                                    std::int64_t count, const void* values) {
      on_reduced_(index, first + offset, count, values);
    };
  }
  return std::make_unique<ScheduledOperation>(
      ScheduledOperation::Call{
          fingerprint(),
          schedule_of(Algorithm::pairwise,
                      {.kind = Kind::reduce_scatter, .ranks = ranks_, .rank = rank_}),
          {scheduled},
          reduction_,
          std::move(on_reduced)},
      *transport_, rank_, ranks_);
}

Work reduce_scatter_through(const SymmetricMemory& windows, std::vector<WindowedPart> parts,
                            const ReduceOptions& options) {
  const SymmetricSpan memory = windows.span(0, windows.bytes(), Dtype::u8);
  const std::shared_ptr<Communicator> group = memory.memory->communicator();
  require_parts(Kind::reduce_scatter, parts.size(), options);
  Fingerprint fingerprint = fingerprint_of(Kind::reduce_scatter, options.name);
  fingerprint.algorithm =
      chosen_algorithm(Kind::reduce_scatter, Algorithm::automatic, group->shares_memory());
  add_reduction(fingerprint, options);
  Reduction reduction;
  for (const WindowedPart& part : parts) {
    reduction = reduction_of(options, part.dtype, group->size());
    fingerprint.add({memory.memory->id(), 0, part.count, part.dtype, std::nullopt});
  }
  if (!group->shares_memory()) {
    const auto messages =
        std::make_shared<WindowedMessages>(fingerprint, group->rank(), group->size(), memory,
                                           std::move(parts), reduction, options.on_reduced);
    messages->carry_by(group->transport());
    return group->issue(messages);
  }
  return group->issue(
      std::make_shared<WindowedReduceScatter>(fingerprint, group->rank(), group->size(), memory,
                                              std::move(parts), reduction, options.on_reduced));
}

}  // namespace lockstep::comm
