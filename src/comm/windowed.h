// reduce_scatter of what has no place in symmetric memory and need not lie in one piece: each rank
// lays it there piece by piece, so that windows of a few MB do for any size.
//
// Cost per rank, X bytes on P ranks, W bytes a window: X/W + 1 steps, one round of sequence words
// each; copies X in, reads P·X/P, writes X/P; (P-1)·X/P received. Adds in the tree for every P.
//
// A piece holds the same columns of all ranks' blocks, so that all reduce a part of each. In step j
// a rank works on piece j-1, then fills piece j. All ranks are in one step at a time, so two
// windows keep the pieces apart.
#pragma once

#include "base/range.h"
#include "comm/operation.h"
#include "comm/reduction.h"
#include "comm/scheduled.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep::comm {

inline constexpr int kWindows = 2;

struct WindowedPart {
  std::int64_t count = 0;  // elements, equal on all ranks
  Dtype dtype = Dtype::f32;
  // Writes elements [begin, end) of this rank's input to where they travel. Called, each element
  // once, while the group advances; dropped, with what it owns, after the last. Must not use the
  // group.
  std::function<void(Range elements, void* to)> fill = {};
  Span output = {};  // as ScatterPart::output
};

// Collective of the group that allocated `windows`: as Group::reduce_scatter of several spans. The
// memory is free again for the next collective through it, and only for that.
Work reduce_scatter_through(const SymmetricMemory& windows, std::vector<WindowedPart> parts,
                            const ReduceOptions& options);

class WindowedReduceScatter : public Operation {
 public:
  // `windows`: bytes.
  WindowedReduceScatter(const Fingerprint& fingerprint, int rank, int ranks, SymmetricSpan windows,
                        std::vector<WindowedPart> parts, const Reduction& reduction,
                        OnReduced on_reduced);
  std::int64_t steps() const override { return static_cast<std::int64_t>(pieces_.size()) + 1; }
  Gate gate(std::int64_t) const override { return Gate::stepped; }
  Ends ends() const override { return Ends::alone; }
  bool run(std::int64_t step, Traffic& traffic) override;

 protected:
  struct Piece {
    std::size_t part;
    Range columns;  // of every rank's block
  };

  std::int64_t window_bytes() const;
  // Elements of each rank's block that a window has room for.
  std::int64_t columns_of(Dtype dtype) const;
  void cut(std::size_t part);
  // Writes what a piece holds for each rank to `place(rank)`; after its last, a part is let go.
  template <class Place>
  void fill(std::size_t piece, Place place);
  void work(std::size_t piece, Traffic& traffic);
  // The elements of its part that a piece holds for a rank.
  Range elements_of(const Piece& piece, int rank) const;
  // This rank's elements of a piece where its result belongs, if anywhere.
  Span output_of(const Piece& piece) const;
  // Where rank `from` lays what it has of a piece for rank `to`.
  std::byte* place(std::size_t piece, int from, int to) const;

  int rank_;
  int ranks_;
  SymmetricSpan windows_;
  std::vector<WindowedPart> parts_;
  Reduction reduction_;
  OnReduced on_reduced_;
  std::vector<Piece> pieces_;
};

// The same over a network: each piece is a collective of its own, out of this rank's window and
// into its output, by pairwise: (P-1)·X/P sent and received. Counts that ranks share evenly only.
class WindowedMessages final : public WindowedReduceScatter {
 public:
  using WindowedReduceScatter::WindowedReduceScatter;
  void carry_by(Transport& transport) { transport_ = &transport; }
  std::int64_t steps() const override { return 1; }
  Gate gate(std::int64_t) const override { return Gate::entered; }
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  std::unique_ptr<ScheduledOperation> begin(std::size_t piece);

  Transport* transport_ = nullptr;
  std::size_t piece_ = 0;
  std::unique_ptr<ScheduledOperation> running_;  // of piece_
};

}  // namespace lockstep::comm
