// Collectives on symmetric memory, in place: every rank reads and writes all ranks' parts.
//
// Cost per rank, X bytes on P ranks, b = this rank's block (X/P):
//   all_reduce      one step   reads P·b, writes P·b          (P-1)·b received, (P-1)·b sent
//   reduce_scatter  one step   reads P·b, writes b            (P-1)·b received
//   all_gather      one step   reads b, writes (P-1)·b        (P-1)·b sent
//   broadcast       one step   reads X, writes X, not on root X received
// and two rounds of sequence words: all have entered, all are done. Adds in the tree for every P.
#pragma once

#include "base/range.h"
#include "comm/operation.h"
#include "comm/reduction.h"
#include "comm/shared_memory.h"

#include <vector>

namespace lockstep::comm {

// Elements of symmetric memory as one operation sees them.
struct DirectPart {
  SymmetricSpan span;
  std::optional<Dtype> round_to = {};

  // Element `index` in rank r's part.
  std::byte* at(int rank, std::int64_t index) const {
    return span.memory->part(rank) + span.offset_bytes + index * size_of(span.dtype);
  }
};

// A step on all ranks' memory, from the moment all have entered until all have left.
class DirectOperation : public Operation {
 public:
  // Of one rank's memory at a time: with all sources and destinations a chunk stays in the cache
  // nearest to the core, so that on_reduced finds the result there.
  static constexpr std::int64_t kChunkBytes = 128 << 10;

  DirectOperation(const Fingerprint& fingerprint, int rank, int ranks)
      : Operation(fingerprint), rank_(rank), ranks_(ranks) {}
  std::int64_t steps() const override { return 1; }
  Gate gate(std::int64_t) const override { return Gate::entered; }
  Ends ends() const override { return Ends::together; }

 protected:
  int rank_;
  int ranks_;
};

// This rank's block of a part, or a range of it.
struct BlockReduction {
  std::size_t part = 0;  // as on_reduced is told
  Range elements = {};   // likewise
  Dtype dtype = Dtype::f32;
  std::optional<Dtype> round_to = {};
  std::vector<const std::byte*> sources = {};  // per rank: where its elements begin
  Span output = {};                            // of as many, as ScatterPart::output
};

// Reduces it chunk by chunk and tells on_reduced, where there is one, of each.
void reduce_block(const BlockReduction& block, const Reduction& reduction,
                  const OnReduced& on_reduced);

class DirectAllReduce : public DirectOperation {
 public:
  DirectAllReduce(const Fingerprint& fingerprint, int rank, int ranks,
                  std::vector<DirectPart> parts, const Reduction& reduction, OnReduced on_reduced);
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  std::vector<DirectPart> parts_;
  Reduction reduction_;
  OnReduced on_reduced_;
};

class DirectReduceScatter : public DirectOperation {
 public:
  struct Part {
    DirectPart input;
    Span output;  // as ScatterPart::output
  };
  DirectReduceScatter(const Fingerprint& fingerprint, int rank, int ranks, std::vector<Part> parts,
                      const Reduction& reduction, OnReduced on_reduced);
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  std::vector<Part> parts_;
  Reduction reduction_;
  OnReduced on_reduced_;
};

class DirectAllGather : public DirectOperation {
 public:
  DirectAllGather(const Fingerprint& fingerprint, int rank, int ranks, DirectPart data)
      : DirectOperation(fingerprint, rank, ranks), data_(std::move(data)) {}
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  DirectPart data_;
};

// Every rank pulls: the copies run side by side, where a pushing root would make them alone.
class DirectBroadcast : public DirectOperation {
 public:
  DirectBroadcast(const Fingerprint& fingerprint, int rank, int ranks, DirectPart data, int root)
      : DirectOperation(fingerprint, rank, ranks), data_(std::move(data)), root_(root) {}
  // Nobody reads the others' copies.
  Ends ends() const override { return rank_ == root_ ? Ends::together : Ends::alone; }
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  DirectPart data_;
  int root_;
};

}  // namespace lockstep::comm
