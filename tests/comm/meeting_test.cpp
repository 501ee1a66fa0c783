#include "comm/meeting.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

TEST(MeetingOfOne, needs_nobody_and_runs_every_part) {
  std::string parts;
  Exchange exchange;
  exchange.bytes = 4096;
  exchange.before_create = [&] { parts += "before "; };
  exchange.initialise = [&](Segment& segment) {
    parts += "initialise ";
    segment.data()[5] = std::byte{5};
  };
  exchange.prepare = [&](const std::shared_ptr<Segment>&) { parts += "prepare"; };
  const auto segment = meeting_of_one()->hold(exchange);
  EXPECT_EQ(parts, "before initialise prepare");
  EXPECT_EQ(segment->bytes(), 4096);
  EXPECT_EQ(segment->data()[5], std::byte{5});
}

TEST(MeetingOfOne, passes_on_what_a_part_throws) {
  Exchange exchange;
  exchange.bytes = 4096;
  exchange.before_create = [] { throw SystemError("too little memory"); };
  EXPECT_THROW(meeting_of_one()->hold(exchange), SystemError);
}

TEST(ListOfRanks, reads_like_a_sentence) {
  EXPECT_EQ(list_of_ranks({2}), "rank 2");
  EXPECT_EQ(list_of_ranks({1, 3}), "ranks 1 and 3");
  EXPECT_EQ(list_of_ranks({0, 1, 3}), "ranks 0, 1 and 3");
}

}  // namespace
}  // namespace lockstep::comm
