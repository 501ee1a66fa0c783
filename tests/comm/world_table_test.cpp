#include "comm/world_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace lockstep::comm {
namespace {

std::shared_ptr<Segment> segment_for(int ranks) {
  return Segment::create(WorldTable::bytes(ranks));
}

FlightRecord numbered(std::uint64_t number) {
  FlightRecord record;
  record.number = record.group = record.sequence = number;
  record.count.fill(static_cast<std::int64_t>(number));
  record.issued_ns = static_cast<std::int64_t>(number);
  set_text(record.name, "operation " + std::to_string(number));
  return record;
}

TEST(WorldTable, peers_read_what_a_rank_says_of_itself) {
  const auto segment = segment_for(3);
  WorldTable mine(segment->data(), 3);
  const WorldTable theirs(segment->data(), 3);
  EXPECT_EQ(theirs.read(1).handle, Whereabouts::Handle::absent);
  mine.arrive(1, 4711);
  FlightRecord first = numbered(1);
  mine.enter(1, first);
  first.left_ns = 50;
  mine.leave_operation(1, first);
  mine.enter(1, numbered(2));
  mine.wait_for(1, numbered(2), 60);
  mine.beat(1, 70);
  const Whereabouts where = theirs.read(1);
  EXPECT_EQ(where.handle, Whereabouts::Handle::held);
  EXPECT_EQ(where.process, 4711);
  EXPECT_EQ(where.entered.number, 2u);
  EXPECT_STREQ(where.left.name.data(), "operation 1");
  EXPECT_EQ(where.left.left_ns, 50);
  EXPECT_EQ(where.awaited.number, 2u);
  EXPECT_EQ(where.waiting_since_ns, 60);
  EXPECT_EQ(where.heartbeat_ns, 70);
  mine.stop_waiting(1);
  mine.leave(1);
  EXPECT_EQ(theirs.read(1).waiting_since_ns, 0);
  EXPECT_EQ(theirs.read(1).handle, Whereabouts::Handle::left);
  EXPECT_EQ(theirs.read(0).entered.number, 0u);
  EXPECT_EQ(theirs.read(2).entered.number, 0u);
}

// Two threads of the rank write, one of a peer reads: records come whole.
TEST(WorldTable, readers_see_whole_records_while_threads_of_the_rank_write) {
  const auto segment = segment_for(1);
  WorldTable table(segment->data(), 1);
  std::atomic<int> writing = 2;
  std::vector<std::thread> writers;
  for (const std::uint64_t first : {1u, 2u}) {
    writers.emplace_back([&, first] {
      for (std::uint64_t n = first; n < 4000; n += 2) {
        table.enter(0, numbered(n));
        table.leave_operation(0, numbered(n));
        std::this_thread::sleep_for(std::chrono::microseconds(1));  // a reader gives up some day
      }
      --writing;
    });
  }
  while (writing > 0) {
    const Whereabouts where = table.read(0);
    for (const FlightRecord& record : {where.entered, where.left}) {
      if (record.number > 0) {
        EXPECT_EQ(record.count, numbered(record.number).count);
        EXPECT_EQ(record.name, numbered(record.number).name);
      }
    }
  }
  for (auto& writer : writers) {
    writer.join();
  }
  EXPECT_GE(table.read(0).entered.number, 3998u);
}

}  // namespace
}  // namespace lockstep::comm
