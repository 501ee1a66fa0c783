// Coordinator: one rank takes in what the others have, adds it all, and sends back. What data
// parallelism began with, kept as the baseline that the others are measured against.
//
// Cost on P ranks, X bytes in blocks of b = X/P; the coordinator is root, or rank 0:
//   all_reduce      2 rounds   (P-1)·X in and (P-1)·X out of the coordinator; the others X each way
//   reduce          1 round    (P-1)·X in
//   broadcast       1 round    (P-1)·X out
//   gather          1 round    (P-1)·b in
//   scatter         1 round    (P-1)·b out
//   reduce_scatter  2 rounds   (P-1)·X in, (P-1)·b out
//   all_gather      2 rounds   (P-1)·b in, (P-1)·(X-b) out
// Time grows with P, as one link carries it all. Only leaves and results travel; adds in the tree
// for every P.
#include "comm/schedule.h"

#include <algorithm>

namespace lockstep::comm {
namespace {

// One round between the coordinator and everybody else; `blocks_of(r)` is what travels to or from
// rank r.
template <class BlocksOf>
std::vector<Transfer> transfers(const Problem& problem, Form form, BlocksOf blocks_of) {
  std::vector<Transfer> all;
  for (int r = 0; r < problem.ranks; ++r) {
    if (r != problem.root && (problem.rank == problem.root || problem.rank == r)) {
      all.push_back({problem.rank == r ? problem.root : r, form, blocks_of(r)});
    }
  }
  return all;
}

Schedule reduce(const Problem& problem) {
  const std::vector<int> all = all_blocks(problem.ranks);
  const auto leaves = transfers(problem, Form::leaf, [&](int) { return all; });
  if (problem.rank != problem.root) {
    return {{.sends = leaves}};
  }
  std::vector<Addend> addends;
  for (int r = 0; r < problem.ranks; ++r) {
    addends.push_back({r, Form::leaf});
  }
  return {{.receives = leaves, .additions = {{all, addends, Form::result}}}};
}

// What the coordinator has, out to the others.
template <class BlocksOf>
Schedule outward(const Problem& problem, BlocksOf blocks_of) {
  const auto results = transfers(problem, Form::result, blocks_of);
  return problem.rank == problem.root ? Schedule{{.sends = results}}
                                      : Schedule{{.receives = results}};
}

Schedule scatter(const Problem& problem) {
  return outward(problem, [](int r) { return std::vector<int>{r}; });
}

Schedule broadcast(const Problem& problem) {
  return outward(problem, [&](int) { return all_blocks(problem.ranks); });
}

Schedule all_gather(const Problem& problem) {
  const auto others = [&](int r) {
    std::vector<int> blocks = all_blocks(problem.ranks);
    std::erase(blocks, r);
    return blocks;
  };
  return followed_by(reversed(scatter(problem)), outward(problem, others));
}

}  // namespace

Schedule coordinator_schedule(const Problem& problem) {
  switch (problem.kind) {
    case Kind::reduce:
      return reduce(problem);
    case Kind::broadcast:
      return broadcast(problem);
    case Kind::gather:
      return reversed(scatter(problem));
    case Kind::scatter:
      return scatter(problem);
    case Kind::reduce_scatter:
      return followed_by(reduce(problem), scatter(problem));
    case Kind::all_gather:
      return all_gather(problem);
    default:
      return followed_by(reduce(problem), broadcast(problem));
  }
}

}  // namespace lockstep::comm
