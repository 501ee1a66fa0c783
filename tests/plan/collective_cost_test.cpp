#include "plan/collective_cost.h"

#include <gtest/gtest.h>

namespace lockstep::plan {
namespace {

constexpr Link kInside{1, 10};    // 1 s, 10 bytes a second
constexpr Link kBetween{100, 2};  // of a host

Network one_host(int ranks) { return {ranks, ranks, kInside, kBetween}; }

Cost all_reduce(Algorithm algorithm, std::int64_t n, const Network& network) {
  return cost_of(Collective::all_reduce, algorithm, {n, n}, network).value();
}

TEST(CollectiveCost, ring_of_4_sends_one_and_a_half_times_X_in_6_steps) {
  const Cost cost = all_reduce(Algorithm::ring, 4000, one_host(4));
  EXPECT_EQ(cost.steps, 6);
  EXPECT_EQ(cost.sent_bytes, 6000);
  EXPECT_DOUBLE_EQ(cost.seconds, 6 * (1 + 1000 / 10.0));
}

TEST(CollectiveCost, formulas_on_one_host) {
  for (const int p : {2, 3, 4, 7, 8}) {
    const std::int64_t n = 840 * 8;
    const double moved = 2.0 * (p - 1) / p * static_cast<double>(n) / 10;
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::direct, n, one_host(p)).seconds, 2 + moved);
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::pairwise, n, one_host(p)).seconds, 2 * (p - 1) + moved);
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::ring, n, one_host(p)).seconds, 2 * (p - 1) + moved);
    const double whole = static_cast<double>(n) / 10;
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::coordinator, n, one_host(p)).seconds,
                     2 * (p - 1) * (1 + whole));
    const int levels = p <= 2 ? 1 : p <= 4 ? 2 : 3;
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::tree, n, one_host(p)).seconds, 2 * levels * (1 + whole));
  }
}

TEST(CollectiveCost, halving_doubling_takes_log2_steps_and_folds_what_is_no_power_of_two) {
  const std::int64_t n = 6400;
  const Cost eight = all_reduce(Algorithm::halving_doubling, n, one_host(8));
  EXPECT_EQ(eight.steps, 6);
  EXPECT_EQ(eight.sent_bytes, 2 * n / 8 * 7);
  const Cost nine = all_reduce(Algorithm::halving_doubling, n, one_host(9));
  EXPECT_EQ(nine.steps, 8);
  EXPECT_EQ(nine.sent_bytes, eight.sent_bytes + 2 * n);
}

// 2 hosts of 2: by hand.
TEST(CollectiveCost, slow_links_between_hosts) {
  const Network network{4, 2, kInside, kBetween};
  const std::int64_t n = 400;
  // Each of 6 messages of 100 bytes takes as long as the one that crosses.
  EXPECT_DOUBLE_EQ(all_reduce(Algorithm::ring, n, network).seconds, 6 * (100 + 50));
  // Per half: one partner on the host, two across, where both ranks share the link.
  EXPECT_DOUBLE_EQ(all_reduce(Algorithm::pairwise, n, network).seconds,
                   2 * ((1 + 10) + 2 * (100 + 100)));
  // 200 bytes stay inside, then both ranks send 100 across.
  EXPECT_DOUBLE_EQ(all_reduce(Algorithm::halving_doubling, n, network).seconds,
                   2 * ((1 + 20) + (100 + 100)));
  EXPECT_DOUBLE_EQ(all_reduce(Algorithm::hierarchical, n, network).seconds,
                   2 * ((1 + 20) + (100 + 100)));
  EXPECT_DOUBLE_EQ(all_reduce(Algorithm::tree, n, network).seconds, 2 * ((1 + 40) + (100 + 200)));
  EXPECT_DOUBLE_EQ(all_reduce(Algorithm::coordinator, n, network).seconds,
                   2 * ((1 + 40) + 2 * (100 + 200)));
}

TEST(CollectiveCost, halves_add_up_to_the_whole) {
  for (const Algorithm algorithm : {Algorithm::pairwise, Algorithm::ring,
                                    Algorithm::halving_doubling, Algorithm::hierarchical}) {
    const Network network{24, 8, kInside, kBetween};
    const Payload payload{12'000, 24'000};
    const auto reduce = cost_of(Collective::reduce_scatter, algorithm, payload, network);
    const auto gather = cost_of(Collective::all_gather, algorithm, payload, network);
    const auto both = cost_of(Collective::all_reduce, algorithm, payload, network);
    ASSERT_TRUE(reduce && gather && both);
    EXPECT_DOUBLE_EQ(reduce->seconds + gather->seconds, both->seconds);
    EXPECT_EQ(reduce->sent_bytes + gather->sent_bytes, both->sent_bytes);
    EXPECT_EQ(reduce->sent_bytes > gather->sent_bytes, forwards_sums(algorithm));
  }
}

TEST(CollectiveCost, one_rank_pays_nothing_and_impossible_is_said) {
  EXPECT_EQ(all_reduce(Algorithm::ring, 1000, one_host(1)).seconds, 0);
  const Network two{4, 2, kInside, kBetween};
  EXPECT_FALSE(cost_of(Collective::all_reduce, Algorithm::direct, {1, 1}, two));
  EXPECT_FALSE(cost_of(Collective::all_reduce, Algorithm::hierarchical, {1, 1}, one_host(4)));
  EXPECT_FALSE(cost_of(Collective::reduce_scatter, Algorithm::tree, {1, 1}, two));
  EXPECT_FALSE(cost_of(Collective::all_gather, Algorithm::coordinator, {1, 1}, two));
}

TEST(CollectiveCost, the_quickest_changes_with_size_ranks_and_hosts) {
  const auto quickest_of = [](std::int64_t n, const Network& network) {
    return quickest(Collective::all_reduce, {n, 2 * n}, network);
  };
  const Link fast{1e-6, 1e11};
  const Link slow{1e-5, 1e10};
  EXPECT_EQ(quickest_of(100, {8, 8, fast, slow}), Algorithm::direct);
  EXPECT_EQ(quickest_of(8, {65'528, 8, fast, slow}), Algorithm::tree);
  EXPECT_EQ(quickest_of(100'000'000'000, {64, 8, fast, slow}), Algorithm::hierarchical);
  for (const Algorithm algorithm : kPlannedAlgorithms) {
    const Network network{64, 8, fast, slow};
    const Payload payload{1'000'000, 2'000'000};
    const auto cost = cost_of(Collective::all_reduce, algorithm, payload, network);
    if (cost && algorithm != Algorithm::coordinator) {
      const Algorithm best = quickest(Collective::all_reduce, payload, network);
      EXPECT_LE(cost_of(Collective::all_reduce, best, payload, network)->seconds, cost->seconds);
    }
  }
}

TEST(CollectiveCost, the_coordinator_grows_with_the_ranks_and_the_ring_does_not) {
  const auto seconds = [](Algorithm algorithm, int ranks) {
    return all_reduce(algorithm, 64'000'000, {ranks, ranks, {1e-6, 1e9}, kBetween}).seconds;
  };
  EXPECT_NEAR(seconds(Algorithm::coordinator, 64) / seconds(Algorithm::coordinator, 8), 9, 0.01);
  EXPECT_NEAR(seconds(Algorithm::ring, 64) / seconds(Algorithm::ring, 8), 1.125, 0.01);
}

}  // namespace
}  // namespace lockstep::plan
