#include "comm/scheduled.h"

#include "comm/plain_checks.h"
#include "comm/texts.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lockstep::comm {
namespace {

using test::on_ranks;
using test::run_ranks;
using test::text_of;
using test::threw;

// An algorithm on some ranks, on hosts of equally many.
struct World {
  Algorithm algorithm;
  int ranks;
  int hosts = 1;

  std::vector<Group> form() const {
    std::vector<int> host_of;
    for (int r = 0; r < ranks; ++r) {
      host_of.push_back(r / (ranks / hosts));
    }
    return Group::of_threads(ranks, {.deadline = std::chrono::seconds(60), .hosts = host_of});
  }
};

std::string name_of_world(const ::testing::TestParamInfo<World>& info) {
  std::string name(lockstep::name_of(info.param.algorithm));
  std::erase(name, '-');
  return name + "_" + std::to_string(info.param.ranks) +
         (info.param.hosts > 1 ? "_hosts_" + std::to_string(info.param.hosts) : "");
}

std::vector<World> worlds() {
  std::vector<World> all;
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16}) {
    for (const Algorithm algorithm :
         {Algorithm::pairwise, Algorithm::ring, Algorithm::tree, Algorithm::coordinator}) {
      all.push_back({algorithm, ranks});
    }
    if (is_power_of_two(ranks)) {
      all.push_back({Algorithm::halving_doubling, ranks});
      all.push_back({Algorithm::hierarchical, ranks, std::max(1, ranks / 2)});
    } else {
      all.push_back({Algorithm::hierarchical, ranks, ranks});
    }
  }
  all.push_back({Algorithm::hierarchical, 4, 1});
  all.push_back({Algorithm::hierarchical, 12, 3});
  return all;
}

// Under ThreadSanitizer a message between threads costs a hundred times as much, and no type or
// size makes other races than the one whose leaves, partial sums and results differ.
#if defined(__SANITIZE_THREAD__)
constexpr bool kLooksForRaces = true;
#else
constexpr bool kLooksForRaces = false;
#endif

std::vector<std::int64_t> counts_on(int ranks) {
  if (kLooksForRaces) {
    return {ranks - 1, 64 * ranks + 1};
  }
  std::vector<std::int64_t> counts{
      0, 1, ranks - 1, ranks, ranks + 1, 64 * ranks - 1, 64 * ranks + 1};
  std::erase_if(counts, [&](std::int64_t count) { return ranks >= 8 && count <= ranks; });
  return counts;
}

template <class Function>
void for_each_type(Function function) {
  if constexpr (kLooksForRaces) {
    function.template operator()<Bfloat16>();
  } else {
    test::for_each_dtype(function);
  }
}

class Scheduled : public ::testing::TestWithParam<World> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Scheduled, ::testing::ValuesIn(worlds()), name_of_world);

TEST_P(Scheduled, every_collective_type_and_size_gives_the_oracles_bits) {
  const World& world = GetParam();
  auto groups = world.form();
  on_ranks(groups, [&](Group& group) {
    for_each_type([&]<class T>() {
      for (const std::int64_t count : counts_on(world.ranks)) {
        test::check_all<T>(group, count, world.algorithm);
      }
    });
  });
}

TEST_P(Scheduled, reduce_leaves_the_other_ranks_alone) {
  const World& world = GetParam();
  auto groups = world.form();
  on_ranks(groups, [&](Group& group) {
    for_each_type([&]<class T>() {
      for (const std::int64_t count : {0, world.ranks - 1, 64 * world.ranks + 1}) {
        for (ReduceOptions options : test::reductions_of<T>()) {
          options.algorithm = world.algorithm;
          for (const int root : {0, world.ranks / 2, world.ranks - 1}) {
            test::check_reduce<T>(group, count, root, options);
          }
        }
      }
    });
  });
}

// On few ranks: the oracle adds every element on every rank.
std::vector<World> small_worlds() {
  std::vector<World> few = worlds();
  std::erase_if(few, [](const World& world) { return world.ranks == 1 || world.ranks > 4; });
  return few;
}

class ScheduledSlices : public ::testing::TestWithParam<World> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ScheduledSlices, ::testing::ValuesIn(small_worlds()),
                         name_of_world);

TEST_P(ScheduledSlices, meet_without_gap_or_overlap) {
  const World& world = GetParam();
  auto groups = world.form();
  on_ranks(groups, [&](Group& group) {
    // Elements that go through the schedule at once.
    const std::int64_t fits = ScheduledOperation::kSliceBytes / (8 * world.ranks);
    const std::int64_t slice = world.ranks * (fits / kGranule * kGranule);
    const CollectiveOptions options{.algorithm = world.algorithm};
    for (const std::int64_t count : {slice, slice + 1}) {
      test::check_all_reduce<double>(group, count, {.algorithm = world.algorithm});
    }
    test::check_reduce_scatter<Bfloat16>(group, 4 * slice + 3, {.algorithm = world.algorithm});
    test::check_all_gather<double>(group, 2 * slice + 77, options);
    test::check_broadcast<double>(group, slice + 3, world.ranks - 1, options);
  });
}

// Both ways in: symmetric memory is plain memory to a schedule.
TEST_P(Scheduled, symmetric_memory_and_parts_are_taken_too) {
  const World& world = GetParam();
  auto groups = world.form();
  on_ranks(groups, [&](Group& group) {
    const int ranks = group.size();
    const std::int64_t count = ranks * kGranule + 5;
    const auto memory = group.allocate_symmetric(2 * round_up(4 * count, 64), "parts");
    const auto f32 = memory.span(0, count, Dtype::f32);
    const auto bf16 = memory.span(round_up(4 * count, 64), count, Dtype::bf16);
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<float*>(f32.data())[i] = test::value_of<float>(group.rank(), i, 1);
      static_cast<Bfloat16*>(bf16.data())[i] = test::value_of<Bfloat16>(group.rank(), i, 2);
    }
    std::vector<std::pair<std::size_t, Range>> shown;
    ReduceOptions options{.op = ReduceOp::mean, .algorithm = world.algorithm};
    const ReduceOptions plain = options;
    options.on_reduced = [&](std::size_t part, std::int64_t begin, std::int64_t n, const void* at) {
      shown.push_back({part, {begin, begin + n}});
      const auto* place = part == 0 ? static_cast<const std::byte*>(f32.data()) + 4 * begin
                                    : static_cast<const std::byte*>(bf16.data()) + 2 * begin;
      EXPECT_EQ(at, place);
    };
    const std::array<ReducePart, 2> parts{ReducePart{f32, Dtype::bf16}, ReducePart{bf16, {}}};
    group.all_reduce(parts, options).wait();
    ReduceOptions rounded = plain;
    rounded.round_to = Dtype::bf16;
    for (std::int64_t i = 0; i < count; ++i) {
      const int owner = test::owner_of(i, count, ranks, kGranule);
      ASSERT_TRUE(test::same_bits(static_cast<float*>(f32.data())[i],
                                  test::sum_at<float>(i, group, 1, owner, rounded)));
      ASSERT_TRUE(test::same_bits(static_cast<Bfloat16*>(bf16.data())[i],
                                  test::sum_at<Bfloat16>(i, group, 2, owner, plain)));
    }
    const Range own = block_of(count, ranks, group.rank(), kGranule);
    const std::vector<std::pair<std::size_t, Range>> expected =
        own.empty() ? std::vector<std::pair<std::size_t, Range>>{}
                    : std::vector<std::pair<std::size_t, Range>>{{0, own}, {1, own}};
    EXPECT_EQ(shown, expected);
    EXPECT_EQ(group.traffic().collectives, 1);
  });
}

// In place, into fp32 sums, and shown only, as the sharded stages ask for it.
TEST_P(Scheduled, scattered_parts_end_where_they_are_asked_for) {
  const World& world = GetParam();
  auto groups = world.form();
  on_ranks(groups, [&](Group& group) {
    const int ranks = group.size();
    const std::int64_t count = 3 * ranks;
    const auto memory = group.allocate_symmetric(2 * round_up(4 * count, 64), "parts");
    const auto kept = memory.span(0, count, Dtype::bf16);
    const auto shown = memory.span(round_up(4 * count, 64), count, Dtype::bf16);
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<Bfloat16*>(kept.data())[i] = test::value_of<Bfloat16>(group.rank(), i, 1);
      static_cast<Bfloat16*>(shown.data())[i] = test::value_of<Bfloat16>(group.rank(), i, 2);
    }
    std::vector<float> sums(3), seen(3);
    ReduceOptions options{.scale = 0.5, .algorithm = world.algorithm};
    options.on_reduced = [&](std::size_t part, std::int64_t begin, std::int64_t n, const void* at) {
      EXPECT_EQ(begin, 3 * group.rank());
      EXPECT_EQ(n, 3);
      if (part == 1) {
        std::copy_n(static_cast<const float*>(at), n, seen.data());
      }
    };
    const std::array<ScatterPart, 2> parts{ScatterPart{kept, Span(std::span(sums)), {}},
                                           ScatterPart{shown, Span(nullptr, 3, Dtype::f32), {}}};
    group.reduce_scatter(parts, options).wait();
    for (int i = 0; i < 3; ++i) {
      for (const std::uint64_t salt : {1u, 2u}) {
        const test::Leaves<Bfloat16> leaves(3 * group.rank() + i, ranks, salt);
        const float sum = world.algorithm == Algorithm::ring
                              ? test::chain(ReduceOp::sum, leaves.span(),
                                            static_cast<std::size_t>(group.rank()) + 1)
                              : test::tree(ReduceOp::sum, leaves.span(), 0, leaves.count);
        ASSERT_TRUE(
            test::same_bits((salt == 1 ? sums : seen)[static_cast<std::size_t>(i)], sum * 0.5f));
      }
    }
  });
}

// Traffic, exactly, from block sizes: bytes that a rank sends and receives by the formulas that
// open each algorithm's file.
struct Sizes {
  int ranks;
  std::int64_t count;
  std::int64_t granule;
  std::int64_t element;

  std::int64_t of(int block) const {
    return block_of(count, ranks, (block % ranks + ranks) % ranks, granule).size() * element;
  }
  std::int64_t all_but(int block) const { return count * element - of(block); }
};

// reduce_scatter, then all_gather, of bf16, whose partial sums are twice as large.
std::int64_t sent_by_formula(Algorithm algorithm, const Sizes& size, int rank, int hosts) {
  const int ranks = size.ranks;
  if (ranks == 1) {
    return 0;
  }
  switch (algorithm) {
    case Algorithm::ring:  // one leaf, partial sums of the others, then all but the next one's
      return size.of(rank - 1) + 2 * (size.all_but(rank) - size.of(rank - 1)) +
             size.all_but(rank + 1);
    case Algorithm::pairwise:
      return size.all_but(rank) + size.all_but(rank + 1);
    case Algorithm::halving_doubling: {
      std::int64_t sent = 0;
      for (int j = 0; j < ranks; ++j) {
        if ((j & 1) != (rank & 1)) {
          sent += size.of(j);  // leaves
        } else if (j != rank) {
          sent += 2 * size.of(j);
        }
        for (int mask = 1; mask < ranks; mask *= 2) {  // back: what is settled below each mask
          sent += (j & (2 * mask - 1)) == (rank & (2 * mask - 1)) ? size.of(j) : 0;
        }
      }
      return sent;
    }
    case Algorithm::tree: {  // X to rank 0, and X to each that hangs on this rank
      const std::int64_t whole = size.count * size.element;
      std::int64_t sent = rank == 0 ? 0 : (rank % 2 == 1 || rank == ranks - 1 ? whole : 2 * whole);
      for (int mask = 1; mask < ranks && (rank & mask) == 0; mask *= 2) {
        sent += rank + mask < ranks ? whole : 0;
      }
      return sent;
    }
    case Algorithm::coordinator:
      return (rank == 0 ? ranks - 1 : 1) * size.count * size.element;
    default: {
      const int each = ranks / hosts;
      std::int64_t own_place = 0, other_places = 0;  // blocks of this rank's place, and not
      for (int j = 0; j < ranks; ++j) {
        (j % each == rank % each ? own_place : other_places) += size.of(j);
      }
      return other_places + (each == 1 ? 1 : 2) * (own_place - size.of(rank)) +
             (hosts - 1) * size.of(rank) + (each - 1) * own_place;
    }
  }
}

TEST_P(Scheduled, traffic_is_what_the_formulas_say) {
  const World& world = GetParam();
  auto groups = world.form();
  for (const std::int64_t count : {world.ranks * 1000, world.ranks * 192 + 65}) {
    std::vector<std::int64_t> sent(groups.size()), received(groups.size());
    on_ranks(groups, [&](Group& group) {
      std::vector<Bfloat16> data(static_cast<std::size_t>(count));
      const Traffic before = group.traffic();
      group.all_reduce(std::span(data), {.algorithm = world.algorithm}).wait();
      const auto r = static_cast<std::size_t>(group.rank());
      sent[r] = group.traffic().sent - before.sent;
      received[r] = group.traffic().received - before.received;
      EXPECT_EQ(group.traffic().collectives, before.collectives + 1);
      EXPECT_EQ(sent[r], sent_by_formula(world.algorithm, {world.ranks, count, kGranule, 2},
                                         group.rank(), world.hosts))
          << "rank " << group.rank();
    });
    EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}),
              std::accumulate(received.begin(), received.end(), std::int64_t{0}));
  }
}

// spec.md: four ranks, ring: each sends 1.5·X.
TEST(ScheduledTraffic, a_ring_of_four_sends_one_and_a_half_times_everything) {
  on_ranks(4, [](Group& group) {
    std::vector<float> data(4096);
    group.all_reduce(std::span(data), {.algorithm = Algorithm::ring}).wait();
    EXPECT_EQ(group.traffic().sent, 4096 * 4 * 3 / 2);
    EXPECT_EQ(group.traffic().received, 4096 * 4 * 3 / 2);
  });
}

class ScheduledTransfers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ScheduledTransfers, ::testing::Values(1, 2, 3, 4, 7, 8, 16));

TEST_P(ScheduledTransfers, gather_scatter_and_all_to_all_move_every_type) {
  const int ranks = GetParam();
  on_ranks(ranks, [&](Group& group) {
    for_each_type([&]<class T>() {
      for (const std::int64_t count : {0, 1, ranks - 1, ranks, ranks + 1, 70 * ranks}) {
        for (const Algorithm algorithm :
             {Algorithm::automatic, Algorithm::tree, Algorithm::coordinator}) {
          for (const int root : {0, ranks / 2, ranks - 1}) {
            test::check_gather<T>(group, count, root, {.algorithm = algorithm});
            test::check_scatter<T>(group, count, root, {.algorithm = algorithm});
          }
        }
        test::check_all_to_all<T>(group, count);
        test::check_all_to_all<T>(group, count, {.algorithm = Algorithm::pairwise});
      }
    });
  });
}

TEST_P(ScheduledTransfers, slices_of_transfers_meet_without_gap_or_overlap) {
  const int ranks = GetParam();
  on_ranks(ranks, [&](Group& group) {
    constexpr std::int64_t kSlice = ScheduledOperation::kSliceBytes / 4;
    for (const std::int64_t count : {kSlice / ranks * ranks, kSlice + 77}) {
      test::check_gather<float>(group, count, ranks - 1);
      test::check_scatter<float>(group, count, 0, {.algorithm = Algorithm::tree});
      test::check_all_to_all<float>(group, count);
    }
  });
}

TEST(ScheduledOrder, all_kinds_of_operations_follow_each_other) {
  on_ranks(3, [](Group& group) {
    std::vector<Work> works;
    std::vector<std::vector<float>> values;
    constexpr std::array kEach{Algorithm::ring, Algorithm::automatic, Algorithm::tree,
                               Algorithm::pairwise, Algorithm::coordinator};
    for (std::size_t i = 0; i < 40; ++i) {
      values.emplace_back(i % 4 == 0 ? 200'000 : 10, static_cast<float>(i));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      works.push_back(
          group.all_reduce(std::span(values[i]), {.algorithm = kEach[i % kEach.size()]}));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) {
      work->wait();
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i].front(), static_cast<float>(3 * i));
      ASSERT_EQ(values[i].back(), static_cast<float>(3 * i));
    }
  });
}

TEST(ScheduledErrors, another_algorithm_on_a_rank_is_named_on_all) {
  auto groups = Group::of_threads(3);
  const auto outcomes = run_ranks(groups, [](Group& group) {
    std::vector<float> data(10);
    const Algorithm algorithm = group.rank() == 2 ? Algorithm::ring : Algorithm::automatic;
    group.all_reduce(std::span(data), {.algorithm = algorithm}).wait();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<Mismatch>(outcome));
    // Rank 0 is one side where it had come when the first difference was seen.
    const std::string direct = "rank [01]: all_reduce f32.10. sum, plain, direct";
    const std::string ring = "rank 2: all_reduce f32.10. sum, plain, ring";
    test::expect_match(text_of(outcome),
                       "(" + direct + "; " + ring + "|" + ring + "; " + direct + "); every rank");
  }
}

TEST(ScheduledErrors, what_cannot_be_is_refused_before_anything_is_issued) {
  on_ranks(3, [](Group& group) {
    std::vector<float> data(12), block(4);
    const auto refused = [&](auto call) { EXPECT_THROW(call().wait(), UsageError); };
    refused([&] {
      return group.all_reduce(std::span(data), {.algorithm = Algorithm::halving_doubling});
    });
    refused([&] { return group.all_reduce(std::span(data), {.algorithm = Algorithm::native}); });
    refused([&] {
      return group.gather(std::span(block), std::span(data), 0, {.algorithm = Algorithm::ring});
    });
    refused([&] { return group.gather(std::span(block), std::span(data), 3); });
    refused([&] { return group.scatter(std::span(data), std::span(data), 1); });
    refused([&] { return group.all_to_all(std::span(data), std::span(block)); });
    refused([&] {
      return group.all_to_all(Span(data.data(), 9, Dtype::f32),
                              Span(data.data() + 1, 9, Dtype::f32));
    });
    refused([&] { return group.reduce(std::span(data), -1); });
    group.all_reduce(std::span(data), {.algorithm = Algorithm::ring}).wait();
    EXPECT_EQ(group.traffic().collectives, 1);
  });
}

TEST(ScheduledErrors, a_rank_that_left_ends_the_wait_of_all_others) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::coordinator}) {
    auto groups = Group::of_threads(4);
    const auto outcomes = run_ranks(groups, [&](Group& group) {
      std::vector<float> data(1000);
      group.all_reduce(std::span(data), {.algorithm = algorithm}).wait();
      if (group.rank() == 2) {
        const Group gone = std::move(group);
        return;
      }
      group.all_reduce(std::span(data), {.algorithm = algorithm}).wait();
    });
    for (const std::size_t r : {0u, 1u, 3u}) {
      EXPECT_TRUE(threw<PeerLost>(outcomes[r])) << text_of(outcomes[r]);
      test::expect_match(text_of(outcomes[r]), "rank 2 left");
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
