// Groups whose ranks share no memory: the same operations, the same bits, the same failures.
#include "comm/networks.h"
#include "comm/plain_checks.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using test::groups_on_a_network;
using test::on_network;
using test::run_ranks;
using test::threw;

class NetworkGroup : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NetworkGroup, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(NetworkGroup, every_collective_and_type_gives_the_trees_bits) {
  on_network(GetParam(), [](Group& group) {
    test::for_each_dtype([&]<class T>() {
      for (const std::int64_t count : test::sizes_for(group.size())) {
        test::check_all<T>(group, count);
      }
    });
    test::check_reduce<float>(group, 1001, 0, {});
    test::check_gather<float>(group, 1001, group.size() - 1);
    test::check_scatter<float>(group, 1001, 0);
    test::check_all_to_all<float>(group, 1001);
    group.barrier();
  });
}

TEST_P(NetworkGroup, large_collectives_and_several_at_once_go_through) {
  on_network(GetParam(), [](Group& group) {
    test::check_all_reduce<float>(group, 1'500'001, {.op = ReduceOp::mean});
    std::vector<float> first(200'000, 1.0f);
    std::vector<float> second(70'000, 2.0f);
    Work one = group.all_reduce(std::span(first), {.name = "first"});
    Work two = group.all_reduce(std::span(second), {.name = "second"});
    two.wait();
    one.wait();
    const auto ranks = static_cast<float>(group.size());
    ASSERT_EQ(first.back(), ranks);
    ASSERT_EQ(second.front(), 2 * ranks);
  });
}

TEST_P(NetworkGroup, symmetric_memory_is_each_ranks_own_part) {
  on_network(GetParam(), [](Group& group) {
    constexpr std::int64_t kCount = 1000;
    const auto memory = group.allocate_symmetric(8192, "part");
    const SymmetricSpan span = memory.span(64, kCount, Dtype::f32);
    std::fill_n(static_cast<float*>(span.data()), kCount, static_cast<float>(group.rank() + 1));
    std::int64_t seen = 0;
    const Range own = block_of(kCount, group.size(), group.rank());
    std::vector<float> block(static_cast<std::size_t>(own.size()));
    ReduceOptions options;
    options.on_reduced = [&](std::size_t part, std::int64_t begin, std::int64_t count,
                             const void* values) {
      ASSERT_EQ(part, 0u);
      ASSERT_GE(begin, own.begin);
      ASSERT_LE(begin + count, own.end);
      ASSERT_EQ(*static_cast<const float*>(values),
                static_cast<float>(group.size() * (group.size() + 1)) / 2);
      seen += count;
    };
    group.reduce_scatter(span, Span(std::span(block)), options).wait();
    ASSERT_EQ(seen, own.size());
    ASSERT_EQ(static_cast<float*>(span.data())[0], static_cast<float>(group.rank() + 1));
    group.all_reduce(span).wait();
    ASSERT_EQ(static_cast<float*>(span.data())[kCount - 1],
              static_cast<float>(group.size() * (group.size() + 1)) / 2);
  });
}

TEST_P(NetworkGroup, parts_of_parts_have_lines_of_their_own) {
  on_network(GetParam(), [](Group& group) {
    Group copy = group.duplicate();
    auto half = copy.split(group.rank() % 2, -group.rank());
    auto few = half->split(half->rank() == 0 ? 0 : -1, 0);
    std::vector<double> whole(5000, 1.0);
    std::vector<double> part(5000, 1.0);
    Work over_all = group.all_reduce(std::span(whole));
    half->all_reduce(std::span(part)).wait();
    over_all.wait();
    ASSERT_EQ(whole[4999], group.size());
    ASSERT_EQ(part[4999], half->size());
    if (few) {
      test::check_all_reduce<float>(*few, 100, {});
    }
    test::check_all_reduce<float>(copy, 100, {});
  });
}

TEST_P(NetworkGroup, traffic_is_the_formulas) {
  on_network(GetParam(), [](Group& group) {
    const std::int64_t ranks = group.size();
    const std::int64_t count = ranks * 64 * 10;
    std::vector<float> values(static_cast<std::size_t>(count));
    group.all_reduce(std::span(values)).wait();
    ASSERT_EQ(group.traffic().sent, 2 * (ranks - 1) * 64 * 10 * 4);
    ASSERT_EQ(group.traffic().received, 2 * (ranks - 1) * 64 * 10 * 4);
    ASSERT_EQ(group.traffic().collectives, 1);
  });
}

TEST(NetworkGroup, ranks_that_disagree_all_learn_both_sides) {
  auto groups = groups_on_a_network(3, {.deadline = std::chrono::seconds(60)});
  const auto outcomes = run_ranks(groups, [](Group& group) {
    std::vector<float> values(group.rank() == 2 ? 10 : 20);
    group.all_reduce(std::span(values), {.name = "sum"}).wait();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<Mismatch>(outcome)) << test::text_of(outcome);
    EXPECT_NE(test::text_of(outcome).find("f32[20]"), std::string::npos);
    EXPECT_NE(test::text_of(outcome).find("f32[10]"), std::string::npos);
  }
}

TEST(NetworkGroup, who_leaves_too_early_is_named) {
  auto groups = groups_on_a_network(2, {.deadline = std::chrono::seconds(60)});
  const auto outcomes = run_ranks(groups, [](Group& group) {
    if (group.rank() == 1) {
      const Group gone = std::move(group);
      return;
    }
    group.barrier();
  });
  EXPECT_TRUE(threw<PeerLost>(outcomes[0])) << test::text_of(outcomes[0]);
  EXPECT_NE(test::text_of(outcomes[0]).find("rank 1 left"), std::string::npos);
}

TEST(NetworkGroup, H42_a_peer_that_never_comes_is_named_within_the_deadline) {
  auto groups = groups_on_a_network(2, {.deadline = milliseconds(300)});
  const auto outcomes = run_ranks(groups, [](Group& group) {
    if (group.rank() == 0) {
      group.barrier();
    }
  });
  EXPECT_TRUE(threw<TimedOut>(outcomes[0])) << test::text_of(outcomes[0]);
  EXPECT_NE(test::text_of(outcomes[0]).find("rank 1"), std::string::npos);
}

TEST(NetworkGroup, memory_of_one_host_and_reading_in_place_are_refused) {
  on_network(2, [](Group& group) {
    EXPECT_THROW(group.allocate_host(100, "shared"), UsageError);
    std::vector<float> values(10);
    EXPECT_THROW(group.all_reduce(std::span(values), {.algorithm = Algorithm::direct}), UsageError);
    group.barrier();
  });
}

}  // namespace
}  // namespace lockstep
