// A collective that follows a schedule over a transport: for each slice of its blocks, round by
// round, it posts what the round sends and receives, lets the transport move it, and adds. A state
// machine that never waits; what one rank sends ahead waits in the transport.
//
// Cost: the schedule's (each algorithm's file), plus on one host one copy into a line and one out
// of it per byte. Memory: per element of a slice one partial sum where the schedule has any, one
// result where its place is not in the caller's memory, and what is received to be added.
#pragma once

#include "base/range.h"
#include "comm/combine.h"
#include "comm/operation.h"
#include "comm/schedule.h"
#include "comm/transport.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace lockstep::comm {

// One span of a collective, in this rank's memory. Blocks are block_of(count, ranks, r, granule).
struct ScheduledPart {
  std::int64_t count = 0;  // elements of all blocks together
  std::int64_t granule = 1;
  Dtype dtype = Dtype::u8;
  Dtype result = Dtype::u8;  // f32 where sums of 16-bit elements are kept; else dtype
  std::optional<Dtype> round_to = {};
  // All blocks side by side: of leaves, and of results; null where there are none.
  std::byte* leaves = nullptr;
  std::byte* results = nullptr;
  // This rank's result, where `results` is null; null: only on_reduced sees it.
  std::byte* block = nullptr;
  // all_to_all: what is received has this rank's block's size, one behind the other in `results`.
  bool transposed = false;

  // Copied whole, before the first round and after the last.
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::int64_t bytes = 0;
  };
  Copy before = {};
  Copy after = {};
};

class ScheduledOperation final : public Operation {
 public:
  // Bytes of one rank's elements that go through the schedule at a time.
  static constexpr std::int64_t kSliceBytes = 2 << 20;

  struct Call {
    Fingerprint fingerprint;
    Schedule schedule;
    std::vector<ScheduledPart> parts;
    Reduction reduction = {};
    OnReduced on_reduced = {};
  };
  ScheduledOperation(Call call, Transport& transport, int rank, int ranks);

  std::int64_t steps() const override { return 1; }
  Gate gate(std::int64_t) const override { return Gate::entered; }
  Ends ends() const override { return Ends::alone; }
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  enum class State : std::uint8_t { starts, posts, moves };
  struct Posted {
    int peer;
    std::uint64_t number;
  };

  void begin_part();
  void end_part();
  void end_slice();
  void end_round();
  void post(Traffic& traffic);
  bool moved() const;
  void add(const Addition& addition);
  void copy(const Transfer& transfer);

  // Elements of a block in this slice, from the block's begin.
  Range within(std::int64_t block_elements) const;
  Range block(int index) const;
  std::int64_t elements(int index) const { return within(block(index).size()).size(); }
  // Where this rank holds the slice's elements of a block; received ones have places of their own.
  std::byte* held(int index, Form form);
  Piece received(int index, Form form, int peer);
  Piece sent(int index, Form form);
  std::byte* scratch(std::vector<std::byte>& memory, int index, Dtype dtype);

  Call call_;
  Transport& transport_;
  int rank_;
  int ranks_;
  State state_ = State::starts;
  std::size_t part_ = 0;
  std::size_t round_ = 0;
  std::int64_t slice_ = 0;
  std::int64_t slices_ = 0;
  std::int64_t slice_elements_ = 1;  // of each block
  std::vector<Combiner> combiners_;  // per part
  std::vector<Posted> sends_;
  std::vector<Posted> receives_;
  std::vector<std::byte> partials_;
  std::vector<std::byte> results_;
  std::map<std::pair<int, int>, std::vector<std::byte>> inbox_;  // by peer and block
};

}  // namespace lockstep::comm
