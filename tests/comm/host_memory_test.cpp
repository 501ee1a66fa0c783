#include "comm/host_memory.h"

#include "comm/worlds.h"
#include "lockstep/group.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::on_ranks;

TEST(HostCopy, ranks_touch_all_pages_once) {
  const std::int64_t page = comm::page_bytes();
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, page, 5 * page, 7 * page}) {
    for (const int ranks : {1, 2, 3, 7}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto [begin, end] = comm::HostCopy::touched_by(rank, ranks, bytes);
        EXPECT_EQ(begin, next);
        EXPECT_GE(end, begin);
        next = end;
      }
      EXPECT_EQ(next, bytes);
    }
  }
}

TEST(HostMemory, what_one_rank_writes_all_read_at_the_same_place) {
  on_ranks(3, [](Group& group) {
    const HostMemory memory = group.allocate_host(1000, "values");
    EXPECT_EQ(memory.bytes(), 1000);
    EXPECT_NE(static_cast<const std::byte*>(memory.writable()), memory.readable());
    EXPECT_EQ(std::to_integer<int>(memory.readable()[999]), 0);
    group.barrier();
    memory.writable()[900 + group.rank()] = std::byte(10 + group.rank());
    group.barrier();
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(std::to_integer<int>(memory.readable()[900 + rank]), 10 + rank);
    }
  });
}

TEST(HostMemory, a_write_to_what_is_for_reading_is_a_fault) {
  Group alone = Group::alone();
  const HostMemory memory = alone.allocate_host(64, "values");
  auto* const bytes = const_cast<std::byte*>(memory.readable());
  // By the signal, or by a sanitizer that has it.
  const auto died = [](int status) { return status != 0; };
  EXPECT_EXIT(bytes[0] = std::byte{1}, died, "");
}

TEST(HostMemory, is_nothing_without_an_allocation_and_refuses_negative_sizes) {
  EXPECT_EQ(HostMemory().readable(), nullptr);
  EXPECT_EQ(HostMemory().writable(), nullptr);
  EXPECT_EQ(HostMemory().bytes(), 0);
  Group alone = Group::alone();
  EXPECT_THROW(alone.allocate_host(-1, "values"), UsageError);
  EXPECT_EQ(alone.allocate_host(0, "none").bytes(), 0);
}

}  // namespace
}  // namespace lockstep
