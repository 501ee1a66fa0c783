// Tree (binomial): at mask m = 1, 2, 4, … neighbouring runs of m ranks join, and the one that holds
// the right run's sum sends it to the one that holds the left's, or the other way about where that
// leads to root. Half as many take part in each round. What spreads goes the same way back.
//
// Cost on P ranks, X bytes; L is a leaf's bytes in a partial sum's (1; 1/2 for sums of bf16 and
// f16, whose partial sums travel in fp32):
//   reduce          ceil(log2 P) rounds     each rank but root sends X (X/L where it is a sum)
//   broadcast       ceil(log2 P) rounds     each rank but root receives X
//   all_reduce      2·ceil(log2 P) rounds   both, by rank 0
//   gather, scatter ceil(log2 P) rounds     each rank but root passes on its run's blocks
//   reduce_scatter  2·ceil(log2 P) rounds   reduce, then scatter
//   all_gather      2·ceil(log2 P) rounds   gather, then broadcast
// Few rounds, but X whole in each: for small messages. The runs are the summation tree's, so it
// adds in the tree for every P.
#include "base/range.h"
#include "comm/schedule.h"

#include <algorithm>

namespace lockstep::comm {
namespace {

// Two runs of ranks that join at one mask.
struct Join {
  Range left;
  Range right;
  int left_holder;
  int right_holder;
  int holder;  // of both: one of the two

  int giver() const { return holder == left_holder ? right_holder : left_holder; }
  Range given() const { return holder == left_holder ? right : left; }
};

// Who holds what is known of a run: root where it is in it, else its first rank.
int holder_of(Range run, int root) {
  return run.begin <= root && root < run.end ? root : static_cast<int>(run.begin);
}

// The joins that a rank takes part in, nearest first.
std::vector<Join> joins_of(const Problem& problem) {
  std::vector<Join> joins;
  const std::int64_t ranks = problem.ranks;
  for (std::int64_t mask = 1; mask < ranks; mask *= 2) {
    const std::int64_t begin = problem.rank / (2 * mask) * (2 * mask);
    const Range left{begin, std::min(ranks, begin + mask)};
    const Range right{left.end, std::min(ranks, begin + 2 * mask)};
    const Join join{left, right, holder_of(left, problem.root), holder_of(right, problem.root),
                    holder_of({left.begin, right.end}, problem.root)};
    if (!right.empty() && (join.left_holder == problem.rank || join.right_holder == problem.rank)) {
      joins.push_back(join);
    }
  }
  return joins;
}

Form form_of(Range run) { return run.size() == 1 ? Form::leaf : Form::partial; }

Schedule reduce(const Problem& problem) {
  Schedule schedule;
  const std::vector<int> all = all_blocks(problem.ranks);
  for (const Join& join : joins_of(problem)) {
    const Form form = form_of(join.given());
    if (join.giver() == problem.rank) {
      schedule.push_back({.sends = {{join.holder, form, all}}});
      continue;
    }
    const bool last = join.left.size() + join.right.size() == problem.ranks;
    schedule.push_back({.receives = {{join.giver(), form, all}},
                        .additions = {{all,
                                       {{join.left_holder, form_of(join.left)},
                                        {join.right_holder, form_of(join.right)}},
                                       last ? Form::result : Form::partial}}});
  }
  return schedule;
}

// Every run's blocks, or everything, to root.
enum class Passes : std::uint8_t { own_blocks, everything };

Schedule toward_root(const Problem& problem, Passes passes) {
  Schedule schedule;
  for (const Join& join : joins_of(problem)) {
    std::vector<int> blocks = all_blocks(problem.ranks);
    if (passes == Passes::own_blocks) {
      std::erase_if(blocks, [&](int b) { return !join.given().contains({b, b + 1}); });
    }
    if (join.giver() == problem.rank) {
      schedule.push_back({.sends = {{join.holder, Form::result, blocks}}});
    } else {
      schedule.push_back({.receives = {{join.giver(), Form::result, blocks}}});
    }
  }
  return schedule;
}

Schedule gather(const Problem& problem) { return toward_root(problem, Passes::own_blocks); }
Schedule scatter(const Problem& problem) { return reversed(gather(problem)); }
Schedule broadcast(const Problem& problem) {
  return reversed(toward_root(problem, Passes::everything));
}

}  // namespace

Schedule tree_schedule(const Problem& problem) {
  switch (problem.kind) {
    case Kind::reduce:
      return reduce(problem);
    case Kind::broadcast:
      return broadcast(problem);
    case Kind::gather:
      return gather(problem);
    case Kind::scatter:
      return scatter(problem);
    case Kind::reduce_scatter:
      return followed_by(reduce(problem), scatter(problem));
    case Kind::all_gather:
      return followed_by(gather(problem), broadcast(problem));
    default:
      return followed_by(reduce(problem), broadcast(problem));
  }
}

}  // namespace lockstep::comm
