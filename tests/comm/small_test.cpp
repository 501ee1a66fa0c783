#include "comm/small.h"

#include "comm/plain_checks.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::on_ranks;

class Small : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Small, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(Small, every_collective_type_and_size_gives_the_trees_bits) {
  on_ranks(GetParam(), [](Group& group) {
    test::for_each_dtype([&]<class T>() {
      for (const std::int64_t count : test::sizes_for(group.size())) {
        test::check_all<T>(group, count);
      }
    });
  });
}

TEST_P(Small, slots_take_their_last_byte) {
  on_ranks(GetParam(), [](Group& group) {
    test::check_all<float>(group, Control::kSlotBytes / 4);
    test::check_all<std::uint8_t>(group, Control::kSlotBytes);
    test::check_all_gather<double>(group, group.size() * Control::kSlotBytes / 8);
  });
}

// A rank that runs ahead must not write a slot that another still reads.
TEST_P(Small, back_to_back_messages_do_not_meet) {
  on_ranks(GetParam(), [](Group& group) {
    for (int round = 0; round < 500; ++round) {
      std::int64_t value = round * (group.rank() + 1);
      group.all_reduce(std::span(&value, 1)).wait();
      ASSERT_EQ(value, round * group.size() * (group.size() + 1) / 2);
    }
  });
}

TEST(SmallTraffic, counts_what_is_read_from_other_slots) {
  on_ranks(4, [](Group& group) {
    std::vector<float> data(100), block(25);
    const Span whole{std::span(data)};
    const Span part{std::span(block)};
    group.all_reduce(whole).wait();
    EXPECT_EQ(group.traffic().received, 3 * 400);
    group.reduce_scatter(whole, part).wait();
    EXPECT_EQ(group.traffic().received, 3 * 400 + 3 * 100);
    group.all_gather(part, whole).wait();
    EXPECT_EQ(group.traffic().received, 3 * 400 + 3 * 100 + 300);
    group.broadcast(whole, 1).wait();
    EXPECT_EQ(group.traffic().received, 3 * 400 + 3 * 100 + 300 + (group.rank() == 1 ? 0 : 400));
    EXPECT_EQ(group.traffic().sent, 0);
    EXPECT_EQ(group.traffic().collectives, 4);
  });
}

}  // namespace
}  // namespace lockstep::comm
