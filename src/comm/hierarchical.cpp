// Hierarchical: first inside each host, where links are fast, then between hosts, where each rank
// meets those of its place on the other hosts and only moves what is its host's sum already.
//
// Cost per rank on N hosts of H ranks, P = N·H, X bytes in blocks of b = X/P; L is a leaf's bytes
// in a partial sum's (1; 1/2 for sums of bf16 and f16, whose partial sums travel in fp32; also 1
// where H is 1 and hosts send leaves):
//   reduce_scatter  H-1 rounds inside, (H-1)·N·b sent; N-1 between hosts, (N-1)·b/L
//   all_gather      N-1 between hosts, (N-1)·b; H-1 inside, (H-1)·N·b
//   all_reduce      both: 2·(N-1)·b of f32 between hosts, where a ring of all ranks crosses with 2X
//                   from one host to the next
//   broadcast       root sends X to its place on each other host, each of them to the rest of
//   theirs reduce          reduce_scatter, then every rank sends b to root
// Each step pairwise. Adds in the tree where H is a power of two, for every N.
#include "comm/schedule.h"

namespace lockstep::comm {
namespace {

struct Place {
  int hosts;
  int each;   // ranks per host
  int host;   // of this rank
  int place;  // of this rank in its host

  int rank_at(int at_host, int at_place) const { return at_host * each + at_place; }
  int rank() const { return rank_at(host, place); }
  // The blocks whose owners have this place on their hosts.
  std::vector<int> blocks_of(int at_place) const {
    std::vector<int> blocks;
    for (int h = 0; h < hosts; ++h) {
      blocks.push_back(rank_at(h, at_place));
    }
    return blocks;
  }
};

// Each place's blocks to the rank at it, which adds its host's leaves.
void add_inside(Schedule& schedule, const Place& own) {
  if (own.each == 1) {
    return;
  }
  const std::vector<int> mine = own.blocks_of(own.place);
  for (int step = 1; step < own.each; ++step) {
    const int to = (own.place + step) % own.each;
    const int from = (own.place + own.each - step) % own.each;
    schedule.push_back({.sends = {{own.rank_at(own.host, to), Form::leaf, own.blocks_of(to)}},
                        .receives = {{own.rank_at(own.host, from), Form::leaf, mine}}});
  }
  std::vector<Addend> leaves;
  for (int place = 0; place < own.each; ++place) {
    leaves.push_back({own.rank_at(own.host, place), Form::leaf});
  }
  schedule.back().additions.push_back(
      {mine, leaves, own.hosts == 1 ? Form::result : Form::partial});
}

// Each host's sum of a block to its owner, which adds them.
void add_between(Schedule& schedule, const Place& own) {
  if (own.hosts == 1) {
    return;
  }
  const Form form = own.each == 1 ? Form::leaf : Form::partial;
  for (int step = 1; step < own.hosts; ++step) {
    const int to = own.rank_at((own.host + step) % own.hosts, own.place);
    const int from = own.rank_at((own.host + own.hosts - step) % own.hosts, own.place);
    schedule.push_back({.sends = {{to, form, {to}}}, .receives = {{from, form, {own.rank()}}}});
  }
  std::vector<Addend> sums;
  for (int host = 0; host < own.hosts; ++host) {
    sums.push_back({own.rank_at(host, own.place), form});
  }
  schedule.back().additions.push_back({{own.rank()}, sums, Form::result});
}

Schedule reduce_scatter(const Place& own) {
  Schedule schedule;
  add_inside(schedule, own);
  add_between(schedule, own);
  return schedule;
}

Schedule all_gather(const Place& own) {
  Schedule schedule;
  for (int step = 1; step < own.hosts; ++step) {
    const int to = own.rank_at((own.host + step) % own.hosts, own.place);
    const int from = own.rank_at((own.host + own.hosts - step) % own.hosts, own.place);
    schedule.push_back(
        {.sends = {{to, Form::result, {own.rank()}}}, .receives = {{from, Form::result, {from}}}});
  }
  for (int step = 1; step < own.each; ++step) {
    const int to = (own.place + step) % own.each;
    const int from = (own.place + own.each - step) % own.each;
    schedule.push_back(
        {.sends = {{own.rank_at(own.host, to), Form::result, own.blocks_of(own.place)}},
         .receives = {{own.rank_at(own.host, from), Form::result, own.blocks_of(from)}}});
  }
  return schedule;
}

Schedule broadcast(const Place& own, int root) {
  const std::vector<int> all = all_blocks(own.hosts * own.each);
  const int root_host = root / own.each;
  const int root_place = root % own.each;
  Round between, inside;
  if (own.place == root_place) {
    for (int host = 0; host < own.hosts; ++host) {
      if (host != root_host && own.rank() == root) {
        between.sends.push_back({own.rank_at(host, own.place), Form::result, all});
      }
    }
    if (own.host != root_host) {
      between.receives.push_back({root, Form::result, all});
    }
    for (int place = 0; place < own.each; ++place) {
      if (place != own.place) {
        inside.sends.push_back({own.rank_at(own.host, place), Form::result, all});
      }
    }
  } else {
    inside.receives.push_back({own.rank_at(own.host, root_place), Form::result, all});
  }
  return {between, inside};
}

}  // namespace

Schedule hierarchical_schedule(const Problem& problem) {
  const int each = problem.ranks_per_host;
  const Place own{problem.ranks / each, each, problem.rank / each, problem.rank % each};
  switch (problem.kind) {
    case Kind::reduce_scatter:
      return reduce_scatter(own);
    case Kind::all_gather:
      return all_gather(own);
    case Kind::broadcast:
      return broadcast(own, problem.root);
    case Kind::reduce: {
      const Problem gather{
          .kind = Kind::gather, .ranks = problem.ranks, .rank = problem.rank, .root = problem.root};
      return followed_by(reduce_scatter(own), coordinator_schedule(gather));
    }
    default:
      return followed_by(reduce_scatter(own), all_gather(own));
  }
}

}  // namespace lockstep::comm
