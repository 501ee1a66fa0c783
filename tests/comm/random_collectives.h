// Random sequences of collectives on random groups and parts of them, each held to the oracle.
#pragma once

#include "comm/arguments.h"
#include "comm/issue_scheduled.h"
#include "comm/plain_checks.h"
#include "comm/worlds.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace lockstep::test {

inline constexpr std::array kCollectives{comm::Kind::all_reduce, comm::Kind::reduce_scatter,
                                         comm::Kind::all_gather, comm::Kind::broadcast,
                                         comm::Kind::reduce,     comm::Kind::gather,
                                         comm::Kind::scatter,    comm::Kind::all_to_all};
inline constexpr std::array kDtypes{Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16,
                                    Dtype::i32, Dtype::i64, Dtype::u8};

// Whether the collective can be run by the algorithm on the group.
inline bool can(comm::Kind kind, Algorithm algorithm, int ranks, int ranks_per_host) {
  const bool has_direct =
      comm::chosen_algorithm(kind, Algorithm::automatic, true) == Algorithm::direct;
  if (algorithm == Algorithm::automatic || (algorithm == Algorithm::direct && has_direct)) {
    return true;
  }
  try {
    comm::require_schedule(algorithm,
                           {.kind = kind, .ranks = ranks, .ranks_per_host = ranks_per_host});
  } catch (const UsageError&) {
    return false;
  }
  // The oracle knows the tree and the ring.
  return algorithm == Algorithm::ring || adds_in_tree(algorithm, ranks, ranks_per_host);
}

// How often each has been run and right; each group counts once.
class Counts {
 public:
  using Cell = std::tuple<comm::Kind, Dtype, Algorithm>;

  Counts() {
    for (const comm::Kind kind : kCollectives) {
      for (const Dtype dtype : kDtypes) {
        for (const Algorithm algorithm : kAlgorithms) {
          if (can(kind, algorithm, 4, 2)) {
            cells_[{kind, dtype, algorithm}] = 0;
          }
        }
      }
    }
  }
  void count(const Cell& cell) {
    const std::lock_guard lock(mutex_);
    ++cells_.at(cell);
  }
  // One line per collective and algorithm, with a number per dtype; those never run are failures.
  void print_and_expect_all() const {
    for (const comm::Kind kind : kCollectives) {
      for (const Algorithm algorithm : kAlgorithms) {
        if (!cells_.contains({kind, kDtypes[0], algorithm})) {
          continue;
        }
        std::printf("%-14s %-16s", std::string(comm::name_of(kind)).c_str(),
                    std::string(lockstep::name_of(algorithm)).c_str());
        for (const Dtype dtype : kDtypes) {
          const std::int64_t times = cells_.at({kind, dtype, algorithm});
          std::printf(" %s %lld", std::string(lockstep::name_of(dtype)).c_str(),
                      static_cast<long long>(times));
          EXPECT_GT(times, 0) << comm::name_of(kind) << " " << lockstep::name_of(algorithm) << " "
                              << lockstep::name_of(dtype) << " was never drawn";
        }
        std::printf("\n");
      }
    }
  }

 private:
  std::map<Cell, std::int64_t> cells_;
  std::mutex mutex_;
};

// One draw, the same on all ranks; what it means on a group follows from the group.
struct Draw {
  comm::Kind kind;
  Dtype dtype;
  Algorithm algorithm;
  std::size_t group;
  std::uint64_t size, root, reduction, salt;

  explicit Draw(std::mt19937_64& random)
      : kind(kCollectives[random() % kCollectives.size()]),
        dtype(kDtypes[random() % kDtypes.size()]),
        algorithm(kAlgorithms[random() % kAlgorithms.size()]),
        group(random() % 4),
        size(random()),
        root(random()),
        reduction(random()),
        salt(random()) {}

  // Mostly few elements, around multiples of the ranks and of granules; seldom many.
  std::int64_t count_for(int ranks) const {
    const auto some = static_cast<std::int64_t>(size >> 8);
    switch (size % 8) {
      case 0:
        return some % 4;
      case 1:
        return 64 * ranks + some % 3 - 1;
      case 2:
        return 3'000 + some % 3'000;
      default:
        return some % (3 * ranks + 2);
    }
  }
};

template <class T>
void run_draw(Group& group, const Draw& draw, Algorithm algorithm) {
  const int ranks = group.size();
  const std::int64_t count = draw.count_for(ranks);
  const int root = static_cast<int>(draw.root % static_cast<std::uint64_t>(ranks));
  const auto reductions = reductions_of<T>();
  ReduceOptions options = reductions[draw.reduction % reductions.size()];
  options.algorithm = algorithm;
  const CollectiveOptions moving{.algorithm = algorithm};
  switch (draw.kind) {
    case comm::Kind::all_reduce:
      return check_all_reduce<T>(group, count, options, draw.salt);
    case comm::Kind::reduce_scatter:
      return check_reduce_scatter<T>(group, count, options, draw.salt);
    case comm::Kind::all_gather:
      return check_all_gather<T>(group, count, moving, draw.salt);
    case comm::Kind::broadcast:
      return check_broadcast<T>(group, count, root, moving, draw.salt);
    case comm::Kind::reduce:
      return check_reduce<T>(group, count, root, options, draw.salt);
    case comm::Kind::gather:
      return check_gather<T>(group, count, root, moving, draw.salt);
    case comm::Kind::scatter:
      return check_scatter<T>(group, count, root, moving, draw.salt);
    default:
      return check_all_to_all<T>(group, count, moving, draw.salt);
  }
}

// Ranks per host in a group, from the hosts of its ranks; these are gathered by a collective.
inline int hosts_in(Group& group, int own_host) {
  std::vector<std::int32_t> host_of(static_cast<std::size_t>(group.size()));
  const std::int32_t own = own_host;
  group.all_gather(std::span(&own, 1), std::span(host_of)).wait();
  return comm::uniform_hosts({host_of.begin(), host_of.end()}, group.size());
}

// `draws` draws on a world of `ranks`, its duplicate, and two ways to part it.
inline void run_world(int ranks, std::uint64_t seed, int draws, Counts& counts) {
  std::vector<int> hosts;
  for (int r = 0; r < ranks; ++r) {
    hosts.push_back(ranks % 2 == 0 ? r / 2 : 0);
  }
  auto groups = Group::of_threads(ranks, {.deadline = std::chrono::seconds(60), .hosts = hosts});
  on_ranks(groups, [&](Group& world) {
    std::vector<Group> all;
    all.push_back(world.duplicate());
    all.push_back(std::move(*world.split(world.rank() % 2, world.rank())));
    all.push_back(std::move(*world.split(world.rank() < 2 ? 0 : 1, -world.rank())));
    const int own_host = hosts[static_cast<std::size_t>(world.rank())];
    std::vector<Group*> drawn{&world};
    for (Group& group : all) {
      drawn.push_back(&group);
    }
    std::vector<int> per_host;
    for (Group* group : drawn) {
      per_host.push_back(hosts_in(*group, own_host));
    }
    std::mt19937_64 random(seed);
    for (int i = 0; i < draws; ++i) {
      const Draw draw(random);
      Group& group = *drawn[draw.group];
      const Algorithm algorithm = can(draw.kind, draw.algorithm, group.size(), per_host[draw.group])
                                      ? draw.algorithm
                                      : Algorithm::automatic;
      for_each_dtype([&]<class T>() {
        if (DtypeOf<T>::value == draw.dtype) {
          run_draw<T>(group, draw, algorithm);
        }
      });
      if (group.rank() == 0) {
        counts.count({draw.kind, draw.dtype, algorithm});
      }
    }
  });
}

// At least `draws` draws in worlds of all sizes, `in_world` in each.
inline void run_random(std::uint64_t seed, int draws, int in_world) {
  constexpr std::array kRanks{2, 3, 4, 5, 6, 8};
  Counts counts;
  for (int i = 0; i * in_world < draws; ++i) {
    run_world(kRanks[static_cast<std::size_t>(i) % kRanks.size()],
              seed * 1'000 + static_cast<std::uint64_t>(i), in_world, counts);
  }
  counts.print_and_expect_all();
}

}  // namespace lockstep::test
