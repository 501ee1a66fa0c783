// What one rank does in a collective over a transport, as integers: which blocks it sends to whom
// in which round, which it receives, and what it adds. Pure: no memory, no bytes, no elements.
//
// An operation on P ranks has P blocks, block r for rank r; how many elements each has is not this
// layer's matter. A rank may hold a block in three forms:
//   leaf     what this rank put in; travels in the elements' dtype
//   partial  a sum of some leaves; travels in the type of the addition
//   result   of the whole collective; travels in the dtype of the result
//
// In a round all sends and receives run side by side; then the additions, in their order, then the
// copies. A round's sends show what the rank held before it.
#pragma once

#include "comm/fingerprint.h"
#include "lockstep/algorithm.h"

#include <cstdint>
#include <vector>

namespace lockstep::comm {

enum class Form : std::uint8_t { leaf, partial, result };

struct Transfer {
  int peer = 0;
  Form form = Form::leaf;
  std::vector<int> blocks;
};

// What a rank sent, in this round or before, or what this rank itself holds.
struct Addend {
  int rank = 0;
  Form form = Form::leaf;
};

// Of each of the blocks: the tree over the addends in their order.
struct Addition {
  std::vector<int> blocks;
  std::vector<Addend> addends;
  Form into = Form::partial;  // or result, which is also scaled and rounded
};

struct Round {
  std::vector<Transfer> sends = {};
  // Results are received in their place, leaves and partial sums apart, for additions and copies.
  std::vector<Transfer> receives = {};
  std::vector<Addition> additions = {};
  std::vector<Transfer> copies = {};  // of received leaves that are results as they are
};

using Schedule = std::vector<Round>;

struct Problem {
  Kind kind = Kind::all_reduce;
  int ranks = 1;
  int rank = 0;
  int root = 0;            // of reduce, broadcast, gather, scatter
  int ranks_per_host = 0;  // as uniform_hosts() says; only hierarchical asks
};

// What schedules run: not direct, native or automatic.
Schedule schedule_of(Algorithm algorithm, const Problem& problem);

// Throws UsageError, naming what would do, where schedule_of() has none: of a collective that the
// algorithm does not have, or of ranks that it can't be used on.
void require_schedule(Algorithm algorithm, const Problem& problem);

// How many ranks each host has where hosts have equally many ranks, all in a row; 0 where not.
// `host_of` names each rank's host; an empty one means that all ranks are on one.
int uniform_hosts(const std::vector<int>& host_of, int ranks);

// Blocks 0 to ranks - 1.
std::vector<int> all_blocks(int ranks);

// The same backwards: who sent receives. For schedules that only move results.
Schedule reversed(Schedule schedule);

// `first`, then `second`.
Schedule followed_by(Schedule first, Schedule second);

// One file each; the problem has been checked, and has at least two ranks.
Schedule ring_schedule(const Problem& problem);
Schedule pairwise_schedule(const Problem& problem);
Schedule halving_doubling_schedule(const Problem& problem);
Schedule tree_schedule(const Problem& problem);
Schedule coordinator_schedule(const Problem& problem);
Schedule hierarchical_schedule(const Problem& problem);

}  // namespace lockstep::comm
