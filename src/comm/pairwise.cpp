// Pairwise: in step s each rank sends block r+s straight to its owner, rank r+s, and receives its
// own from rank r-s; the owner adds all leaves at once. Gathers by the ring.
//
// Cost per rank on P ranks, X bytes in blocks of b = X/P:
//   reduce_scatter  P-1 rounds       sends (P-1)·b
//   all_gather      P-1 rounds       sends (P-1)·b
//   all_reduce      2·(P-1) rounds   sends 2·(P-1)·b
//   broadcast       2·(P-1) rounds   root sends its blocks to their owners, then the ring gathers
//   reduce          P rounds         reduce_scatter, then every rank sends b to root
//   all_to_all      P rounds         sends (P-1)·b; in step s with rank s-r, so that what comes in
//                                    takes the place of what went out
// Only leaves and results travel, both in the elements' dtype. Adds in the tree for every P.
#include "comm/schedule.h"

#include <algorithm>

namespace lockstep::comm {
namespace {

struct Pairs {
  int ranks;
  int rank;

  int ahead(int steps) const { return (rank + steps) % ranks; }
  int behind(int steps) const { return (rank + ranks - steps) % ranks; }
};

Schedule reduce_scatter(const Pairs& pairs) {
  Schedule schedule;
  for (int step = 1; step < pairs.ranks; ++step) {
    const int to = pairs.ahead(step);
    schedule.push_back({.sends = {{to, Form::leaf, {to}}},
                        .receives = {{pairs.behind(step), Form::leaf, {pairs.rank}}}});
  }
  std::vector<Addend> leaves;
  for (int r = 0; r < pairs.ranks; ++r) {
    leaves.push_back({r, Form::leaf});
  }
  schedule.back().additions.push_back({{pairs.rank}, leaves, Form::result});
  return schedule;
}

Schedule all_gather(const Pairs& pairs) {
  return ring_schedule({.kind = Kind::all_gather, .ranks = pairs.ranks, .rank = pairs.rank});
}

// Every owner's block from root, or to it when reversed.
Schedule scatter(const Pairs& pairs, int root) {
  return coordinator_schedule(
      {.kind = Kind::scatter, .ranks = pairs.ranks, .rank = pairs.rank, .root = root});
}

Schedule broadcast(const Pairs& pairs, int root) {
  Schedule gather = all_gather(pairs);
  for (Round& round : gather) {  // root has everything
    std::erase_if(round.sends, [&](const Transfer& transfer) { return transfer.peer == root; });
    if (pairs.rank == root) {
      round.receives.clear();
    }
  }
  return followed_by(scatter(pairs, root), std::move(gather));
}

Schedule all_to_all(const Pairs& pairs) {
  Schedule schedule;
  for (int step = 0; step < pairs.ranks; ++step) {
    const int peer = (step + pairs.ranks - pairs.rank) % pairs.ranks;
    if (peer != pairs.rank) {
      const std::vector<Transfer> transfer{{peer, Form::leaf, {peer}}};
      schedule.push_back({.sends = transfer, .receives = transfer, .copies = transfer});
    }
  }
  return schedule;
}

}  // namespace

Schedule pairwise_schedule(const Problem& problem) {
  const Pairs pairs{problem.ranks, problem.rank};
  switch (problem.kind) {
    case Kind::reduce_scatter:
      return reduce_scatter(pairs);
    case Kind::all_gather:
      return all_gather(pairs);
    case Kind::broadcast:
      return broadcast(pairs, problem.root);
    case Kind::reduce:
      return followed_by(reduce_scatter(pairs), reversed(scatter(pairs, problem.root)));
    case Kind::all_to_all:
      return all_to_all(pairs);
    default:
      return followed_by(reduce_scatter(pairs), all_gather(pairs));
  }
}

}  // namespace lockstep::comm
