// Collectives on memory of any size that peers cannot reach: chunks travel through staging memory
// in a pipeline, with one round of sequence words per chunk. This rank's own block never travels.
//
// Cost per rank, X bytes on P ranks, b = X/P, C = X / stage bytes chunks:
//   all_reduce      C + 2 steps: copies X-b in, reads P·b, writes P·b, copies X-b out
//                   (P-1)·b received, (P-1)·b sent
//   reduce_scatter  C + 1 steps: copies X-b in, reads P·b, writes b; (P-1)·b received
//   all_gather      C/P + 1 steps: copies b in and X-b out; X-b received
//   broadcast       C + 1 steps: copies X in on root, X out elsewhere; X received, not on root
// Adds in the tree for every P.
//
// In step j a rank fills chunk j, works on chunk j-1 and (all_reduce) takes out chunk j-2. All
// ranks are in one step at a time, so three stages per rank keep them apart.
#pragma once

#include "base/range.h"
#include "comm/control.h"
#include "comm/operation.h"
#include "comm/reduction.h"

#include <vector>

namespace lockstep::comm {

class StagedOperation : public Operation {
 public:
  std::int64_t steps() const override { return chunks_ + depth_; }
  Gate gate(std::int64_t) const override { return Gate::stepped; }
  Ends ends() const override { return Ends::alone; }
  bool run(std::int64_t step, Traffic& traffic) override;

 protected:
  struct Shape {
    std::int64_t elements = 0;  // that the chunks cut, in one rank's memory
    std::int64_t chunk = 1;     // elements of one chunk
    std::int64_t depth = 1;     // steps from filling a chunk to its last use
  };
  StagedOperation(const Fingerprint& fingerprint, Control& control, const Shape& shape);

  virtual void fill(std::int64_t chunk) = 0;
  virtual void work(std::int64_t chunk, Traffic& traffic) = 0;
  virtual void take_out(std::int64_t) {}

  std::byte* stage(std::int64_t chunk, int rank) const {
    return control_.stage(static_cast<int>(chunk % Control::kStages), rank);
  }
  // The elements of a chunk.
  Range range_of(std::int64_t chunk) const;
  std::int64_t chunk_elements() const { return chunk_elements_; }
  int rank() const { return control_.rank(); }
  int ranks() const { return control_.ranks(); }

 private:
  Control& control_;
  std::int64_t elements_;
  std::int64_t chunk_elements_;
  std::int64_t chunks_;
  std::int64_t depth_;
};

class StagedAllReduce : public StagedOperation {
 public:
  StagedAllReduce(const Fingerprint& fingerprint, Control& control, Span data,
                  const Reduction& reduction);

 protected:
  void fill(std::int64_t chunk) override;
  void work(std::int64_t chunk, Traffic& traffic) override;
  void take_out(std::int64_t chunk) override;

 private:
  // This rank's block of a chunk, from the chunk's begin.
  Range own_block(std::int64_t chunk) const;
  std::byte* at(std::int64_t element) const;

  Span data_;
  Reduction reduction_;
};

class StagedReduceScatter : public StagedOperation {
 public:
  StagedReduceScatter(const Fingerprint& fingerprint, Control& control, Span input, Span output,
                      const Reduction& reduction);

 protected:
  void fill(std::int64_t chunk) override;
  void work(std::int64_t chunk, Traffic& traffic) override;

 private:
  // The elements of `input_` that a chunk holds for rank r.
  Range part_for(std::int64_t chunk, int rank) const;
  // Where rank `from` lays what it has for this rank `to`.
  std::byte* place(std::int64_t chunk, int from, int to) const;

  Span input_;
  Span output_;
  Reduction reduction_;
};

class StagedAllGather : public StagedOperation {
 public:
  StagedAllGather(const Fingerprint& fingerprint, Control& control, Span input, Span output);

 protected:
  void fill(std::int64_t chunk) override;
  void work(std::int64_t chunk, Traffic& traffic) override;

 private:
  // The elements of `output_` that a chunk of rank r's holds.
  Range part_of(std::int64_t chunk, int rank) const;
  std::byte* at(std::int64_t element) const;

  Span input_;
  Span output_;
};

class StagedBroadcast : public StagedOperation {
 public:
  StagedBroadcast(const Fingerprint& fingerprint, Control& control, Span data, int root);

 protected:
  void fill(std::int64_t chunk) override;
  void work(std::int64_t chunk, Traffic& traffic) override;

 private:
  std::byte* at(std::int64_t element) const;

  Span data_;
  int root_;
};

}  // namespace lockstep::comm
