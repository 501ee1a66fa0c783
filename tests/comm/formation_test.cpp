#include "comm/formation.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace lockstep {
namespace {

using test::on_ranks;

TEST(Formation, a_group_of_threads_is_complete_at_once) {
  const auto members = comm::form_group_of_threads(3, {.name = "trio"});
  ASSERT_EQ(members.size(), 3u);
  for (int r = 0; r < 3; ++r) {
    const auto& member = *members[static_cast<std::size_t>(r)];
    EXPECT_EQ(member.rank(), r);
    EXPECT_EQ(member.group_id(), members[0]->group_id());
  }
}

TEST(Formation, split_orders_by_key_then_rank_and_leaves_negative_colors_out) {
  on_ranks(7, [](Group& group) {
    // Colors 0 1 2 0 1 2 0; rank 5 joins none; keys turn the order round.
    const int color = group.rank() == 5 ? -1 : group.rank() % 3;
    auto part = group.split(color, -group.rank());
    ASSERT_EQ(part.has_value(), group.rank() != 5);
    if (!part) {
      return;
    }
    const std::array<int, 3> sizes{3, 2, 1};
    EXPECT_EQ(part->size(), sizes.at(static_cast<std::size_t>(color)));
    EXPECT_EQ(part->name(), "world/" + std::to_string(color));
    std::vector<std::int32_t> members(static_cast<std::size_t>(part->size()));
    const std::int32_t own = group.rank();
    part->all_gather(std::span(&own, 1), std::span(members)).wait();
    const std::array<std::vector<std::int32_t>, 3> expected{
        std::vector<std::int32_t>{6, 3, 0}, {4, 1}, {2}};
    EXPECT_EQ(members, expected.at(static_cast<std::size_t>(color)));
  });
}

TEST(Formation, duplicate_has_the_same_ranks_and_its_own_operations) {
  on_ranks(3, [](Group& group) {
    Group other = group.duplicate();
    EXPECT_EQ(other.rank(), group.rank());
    EXPECT_EQ(other.size(), 3);
    // Outstanding in both at once, ended in the other order.
    float one = 1.0f;
    float two = 2.0f;
    Work first = group.all_reduce(std::span(&one, 1));
    Work second = other.all_reduce(std::span(&two, 1));
    second.wait();
    first.wait();
    EXPECT_EQ(one, 3.0f);
    EXPECT_EQ(two, 6.0f);
  });
}

TEST(Formation, sub_groups_have_symmetric_memory_and_groups_of_their_own) {
  on_ranks(4, [](Group& group) {
    auto half = group.split(group.rank() / 2, group.rank());
    const auto span = half->allocate_symmetric(64, "half").span(0, 16, Dtype::f32);
    static_cast<float*>(span.data())[0] = static_cast<float>(group.rank());
    half->all_reduce(span).wait();
    EXPECT_EQ(static_cast<float*>(span.data())[0], group.rank() < 2 ? 1.0f : 5.0f);
    EXPECT_THROW(group.all_reduce(span), UsageError);
    auto single = half->split(half->rank(), 0);
    EXPECT_EQ(single->size(), 1);
    EXPECT_EQ(half->split(0, 0)->size(), 2);
  });
}

TEST(Formation, split_may_be_repeated) {
  on_ranks(3, [](Group& group) {
    for (int round = 0; round < 10; ++round) {
      auto part = group.split(0, round % 2 == 0 ? group.rank() : -group.rank());
      part->barrier();
      EXPECT_EQ(part->rank(), round % 2 == 0 ? group.rank() : 2 - group.rank());
    }
  });
}

}  // namespace
}  // namespace lockstep
