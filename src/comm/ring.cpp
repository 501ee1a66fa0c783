// Ring (Patarasuk and Yuan 2009): each rank sends to the next one only and receives from the one
// before it; a block travels once around and grows by one leaf at each rank.
//
// Cost per rank on P ranks, X bytes in blocks of b = X/P; L is a leaf's bytes in a partial sum's
// (1; 1/2 for sums of bf16 and f16, whose partial sums travel in fp32):
//   reduce_scatter  P-1 rounds   sends b once, then (P-2)·b/L
//   all_gather      P-1 rounds   sends (P-1)·b
//   all_reduce      both         2·(P-1)·b for f32
//   broadcast       P-1 hops     sends X, the last one nothing
//   reduce          P-1 hops     sends X, the next ones X/L, root nothing
// Latency grows with P; no link carries more than 2X whatever P is. Adds block b in the order
// b+1, b+2, …, b (modulo P): not in the tree.
#include "comm/schedule.h"

namespace lockstep::comm {
namespace {

struct Ring {
  int ranks;
  int rank;

  int next() const { return (rank + 1) % ranks; }
  int previous() const { return (rank + ranks - 1) % ranks; }
  // The block, or rank, `steps` before this one.
  int before(int steps) const { return ((rank - steps) % ranks + ranks) % ranks; }
};

Schedule reduce_scatter(const Ring& ring) {
  Schedule schedule;
  for (int step = 0; step + 1 < ring.ranks; ++step) {
    const Form form = step == 0 ? Form::leaf : Form::partial;
    const std::vector<int> grows{ring.before(step + 2)};
    schedule.push_back({.sends = {{ring.next(), form, {ring.before(step + 1)}}},
                        .receives = {{ring.previous(), form, grows}},
                        .additions = {{grows,
                                       {{ring.previous(), form}, {ring.rank, Form::leaf}},
                                       step + 2 == ring.ranks ? Form::result : Form::partial}}});
  }
  return schedule;
}

Schedule all_gather(const Ring& ring) {
  Schedule schedule;
  for (int step = 0; step + 1 < ring.ranks; ++step) {
    schedule.push_back({.sends = {{ring.next(), Form::result, {ring.before(step)}}},
                        .receives = {{ring.previous(), Form::result, {ring.before(step + 1)}}}});
  }
  return schedule;
}

// From root along the ring to the one before it.
Schedule broadcast(const Ring& ring, int root) {
  Schedule schedule;
  const std::vector<int> all = all_blocks(ring.ranks);
  if (ring.rank != root) {
    schedule.push_back({.receives = {{ring.previous(), Form::result, all}}});
  }
  if (ring.next() != root) {
    schedule.push_back({.sends = {{ring.next(), Form::result, all}}});
  }
  return schedule;
}

// From the one after root along the ring to root.
Schedule reduce(const Ring& ring, int root) {
  const std::vector<int> all = all_blocks(ring.ranks);
  const bool first = ring.previous() == root;
  if (first) {
    return {{.sends = {{ring.next(), Form::leaf, all}}}};
  }
  const bool second = ring.before(2) == root;
  const Form form = second ? Form::leaf : Form::partial;
  const bool last = ring.rank == root;
  Schedule schedule{{.receives = {{ring.previous(), form, all}},
                     .additions = {{all,
                                    {{ring.previous(), form}, {ring.rank, Form::leaf}},
                                    last ? Form::result : Form::partial}}}};
  if (!last) {
    schedule.push_back({.sends = {{ring.next(), Form::partial, all}}});
  }
  return schedule;
}

}  // namespace

Schedule ring_schedule(const Problem& problem) {
  const Ring ring{problem.ranks, problem.rank};
  switch (problem.kind) {
    case Kind::reduce_scatter:
      return reduce_scatter(ring);
    case Kind::all_gather:
      return all_gather(ring);
    case Kind::broadcast:
      return broadcast(ring, problem.root);
    case Kind::reduce:
      return reduce(ring, problem.root);
    default:
      return followed_by(reduce_scatter(ring), all_gather(ring));
  }
}

}  // namespace lockstep::comm
