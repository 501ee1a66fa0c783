// Halving–doubling (Thakur, Rabenseifner and Gropp 2005), nearest partner first: at mask m = 1, 2,
// 4, … rank r meets rank r^m, keeps the blocks j with (j&m) == (r&m) and gives the others away;
// what is left after log2 P rounds is block r. Gathering goes the same way back.
//
// Cost per rank on P = 2^k ranks, X bytes in blocks of b = X/P; L is a leaf's bytes in a partial
// sum's (1; 1/2 for sums of bf16 and f16, whose partial sums travel in fp32):
//   reduce_scatter  log2 P rounds     sends P/2·b, then (P/2-1)·b/L
//   all_gather      log2 P rounds     sends (P-1)·b
//   all_reduce      2·log2 P rounds   2·(P-1)·b for f32
//   broadcast       2·log2 P rounds   root's blocks halve on their way to their owners, then gather
//   reduce          2·log2 P rounds   the reverse of it
// Nearest first makes every partial sum one of neighbouring ranks, so it adds in the tree. Other P
// are refused.
#include "comm/schedule.h"

#include <algorithm>

namespace lockstep::comm {
namespace {

// The blocks that agree with `rank` in the bits of `mask`.
std::vector<int> blocks_like(int rank, int mask, int ranks) {
  std::vector<int> blocks = all_blocks(ranks);
  std::erase_if(blocks, [&](int block) { return (block & mask) != (rank & mask); });
  return blocks;
}

Schedule reduce_scatter(int ranks, int rank) {
  Schedule schedule;
  for (int mask = 1; mask < ranks; mask *= 2) {
    const int partner = rank ^ mask;
    const int settled = 2 * mask - 1;
    const Form form = mask == 1 ? Form::leaf : Form::partial;
    const std::vector<int> kept = blocks_like(rank, settled, ranks);
    std::vector<Addend> addends{{rank, form}, {partner, form}};
    if (partner < rank) {
      std::swap(addends[0], addends[1]);
    }
    schedule.push_back(
        {.sends = {{partner, form, blocks_like(partner, settled, ranks)}},
         .receives = {{partner, form, kept}},
         .additions = {{kept, addends, 2 * mask == ranks ? Form::result : Form::partial}}});
  }
  return schedule;
}

Schedule all_gather(int ranks, int rank) {
  Schedule schedule;
  for (int mask = ranks / 2; mask >= 1; mask /= 2) {
    const int partner = rank ^ mask;
    const int settled = 2 * mask - 1;
    schedule.push_back(
        {.sends = {{partner, Form::result, blocks_like(rank, settled, ranks)}},
         .receives = {{partner, Form::result, blocks_like(partner, settled, ranks)}}});
  }
  return schedule;
}

// Root's blocks to their owners: at mask m each rank that has some gives half of them away.
Schedule scatter(int ranks, int rank, int root) {
  Schedule schedule;
  const int distance = rank ^ root;
  for (int mask = 1; mask < ranks; mask *= 2) {
    const int partner = rank ^ mask;
    const int settled = 2 * mask - 1;
    Round round;
    if (distance < mask) {
      round.sends.push_back({partner, Form::result, blocks_like(partner, settled, ranks)});
    } else if (distance < 2 * mask) {
      round.receives.push_back({partner, Form::result, blocks_like(rank, settled, ranks)});
    }
    schedule.push_back(std::move(round));
  }
  return schedule;
}

}  // namespace

Schedule halving_doubling_schedule(const Problem& problem) {
  const auto [kind, ranks, rank, root, ranks_per_host] = problem;
  switch (kind) {
    case Kind::reduce_scatter:
      return reduce_scatter(ranks, rank);
    case Kind::all_gather:
      return all_gather(ranks, rank);
    case Kind::broadcast:
      return followed_by(scatter(ranks, rank, root), all_gather(ranks, rank));
    case Kind::reduce:
      return followed_by(reduce_scatter(ranks, rank), reversed(scatter(ranks, rank, root)));
    default:
      return followed_by(reduce_scatter(ranks, rank), all_gather(ranks, rank));
  }
}

}  // namespace lockstep::comm
