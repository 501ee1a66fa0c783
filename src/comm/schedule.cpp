#include "comm/schedule.h"

#include "base/invariant.h"
#include "base/range.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

namespace lockstep::comm {
namespace {

constexpr std::array kScheduled{Algorithm::pairwise,         Algorithm::ring,
                                Algorithm::halving_doubling, Algorithm::tree,
                                Algorithm::hierarchical,     Algorithm::coordinator};

bool is_scheduled(Algorithm algorithm) {
  return std::ranges::find(kScheduled, algorithm) != kScheduled.end();
}

bool has(Algorithm algorithm, Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::broadcast:
    case Kind::reduce:
      return is_scheduled(algorithm);
    case Kind::gather:
    case Kind::scatter:
      return algorithm == Algorithm::tree || algorithm == Algorithm::coordinator;
    case Kind::all_to_all:
      return algorithm == Algorithm::pairwise;
    default:
      return false;
  }
}

std::string those_with(Kind kind) {
  std::string names;
  for (const Algorithm algorithm : kScheduled) {
    if (has(algorithm, kind)) {
      names += (names.empty() ? "" : ", ") + std::string(lockstep::name_of(algorithm));
    }
  }
  return names;
}

// Nothing travels: reductions scale and round what the one rank has.
Schedule alone(Kind kind) {
  if (kind != Kind::all_reduce && kind != Kind::reduce_scatter && kind != Kind::reduce) {
    return {};
  }
  return {{.additions = {{{0}, {{0, Form::leaf}}, Form::result}}}};
}

}  // namespace

void require_schedule(Algorithm algorithm, const Problem& problem) {
  const std::string what = std::string(name_of(problem.kind)) + ": algorithm " +
                           std::string(lockstep::name_of(algorithm));
  if (!has(algorithm, problem.kind)) {
    throw UsageError(what + " has none; use auto or one of " + those_with(problem.kind));
  }
  if (algorithm == Algorithm::halving_doubling && !is_power_of_two(problem.ranks)) {
    throw UsageError(what + " needs a power of two of ranks, got " + std::to_string(problem.ranks) +
                     "; use auto or pairwise");
  }
  if (algorithm == Algorithm::hierarchical && problem.ranks_per_host == 0) {
    throw UsageError(what +
                     " needs hosts with equally many ranks, all of a host in a row; use auto or "
                     "pairwise");
  }
}

Schedule schedule_of(Algorithm algorithm, const Problem& problem) {
  require_schedule(algorithm, problem);
  if (problem.ranks == 1) {
    return alone(problem.kind);
  }
  switch (algorithm) {
    case Algorithm::ring:
      return ring_schedule(problem);
    case Algorithm::pairwise:
      return pairwise_schedule(problem);
    case Algorithm::halving_doubling:
      return halving_doubling_schedule(problem);
    case Algorithm::tree:
      return tree_schedule(problem);
    case Algorithm::hierarchical:
      return hierarchical_schedule(problem);
    default:
      return coordinator_schedule(problem);
  }
}

int uniform_hosts(const std::vector<int>& host_of, int ranks) {
  if (host_of.empty()) {
    return ranks;
  }
  LOCKSTEP_INVARIANT(host_of.size(), ==, static_cast<std::size_t>(ranks));
  const auto first_of_second =
      std::ranges::find_if(host_of, [&](int host) { return host != host_of.front(); });
  const auto each = static_cast<std::size_t>(first_of_second - host_of.begin());
  if (host_of.size() % each != 0) {
    return 0;
  }
  std::vector<int> seen;
  for (std::size_t r = 0; r < host_of.size(); ++r) {
    if (r % each != 0) {
      if (host_of[r] != host_of[r - 1]) {
        return 0;
      }
    } else if (std::ranges::find(seen, host_of[r]) != seen.end()) {
      return 0;
    } else {
      seen.push_back(host_of[r]);
    }
  }
  return static_cast<int>(each);
}

std::vector<int> all_blocks(int ranks) {
  std::vector<int> blocks(static_cast<std::size_t>(ranks));
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

Schedule reversed(Schedule schedule) {
  std::ranges::reverse(schedule);
  for (Round& round : schedule) {
    std::swap(round.sends, round.receives);
  }
  return schedule;
}

Schedule followed_by(Schedule first, Schedule second) {
  std::ranges::move(second, std::back_inserter(first));
  return first;
}

}  // namespace lockstep::comm
