#include "comm/whereabouts.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using Activity = ProcessState::Activity;

constexpr std::int64_t kSecond = 1'000'000'000;

FlightRecord operation(std::uint64_t number, const char* name, std::int64_t issued_s,
                       std::int64_t left_s = 0) {
  Fingerprint fingerprint;
  fingerprint.sequence = number;
  fingerprint.entered_ns = issued_s * kSecond;
  fingerprint.set_name(name);
  FlightRecord record = record_of(fingerprint);
  record.number = number;
  record.group = 1;
  record.left_ns = left_s * kSecond;
  set_text(record.group_name, "world");
  return record;
}

// At 100 s, of group 1: entered 'b' at 50 s, left 'a' at 40 s.
Whereabouts inside() {
  Whereabouts where;
  where.handle = Whereabouts::Handle::held;
  where.left = operation(1, "a", 30, 40);
  where.entered = operation(2, "b", 50);
  return where;
}

std::string told(const Whereabouts& where, std::uint64_t group = 1) {
  return describe(where, group, 100 * kSecond);
}

TEST(Whereabouts, outside_of_operations_it_tells_since_when) {
  Whereabouts where = inside();
  where.entered = where.left;
  EXPECT_EQ(told(where), "elsewhere for 60 s since leaving 'a' (barrier, #1)");
  where.activity = Activity::running;
  EXPECT_EQ(told(where), "computing for 60 s since leaving 'a' (barrier, #1)");
  where.activity = Activity::asleep;
  EXPECT_EQ(told(where), "asleep for 60 s since leaving 'a' (barrier, #1)");
  where.activity = Activity::on_device;
  EXPECT_EQ(told(where), "blocked on a disk or device for 60 s since leaving 'a' (barrier, #1)");
}

TEST(Whereabouts, inside_of_one_it_tells_the_one_before_too) {
  Whereabouts where = inside();
  where.activity = Activity::running;
  EXPECT_EQ(told(where),
            "computing for 50 s since entering 'b' (barrier, #2), last left 'a' (barrier, #1) 60 s "
            "ago");
  where.waiting_since_ns = 60 * kSecond;
  where.awaited = where.entered;
  EXPECT_EQ(told(where),
            "waiting for 'b' (barrier, #2) for 40 s, last left 'a' (barrier, #1) 60 s "
            "ago");
}

TEST(Whereabouts, works_in_flight_are_told_apart) {
  Whereabouts where = inside();
  where.left.left_ns = 60 * kSecond;  // after 'b' was begun
  where.activity = Activity::running;
  EXPECT_EQ(told(where),
            "computing for 40 s since leaving 'a' (barrier, #1), with 'b' (barrier, #2) begun");
  where.waiting_since_ns = 70 * kSecond;
  where.awaited = operation(3, "earlier", 20);
  EXPECT_EQ(told(where),
            "waiting for 'earlier' (barrier, #3) for 30 s, last entered 'b' (barrier, #2) 50 s "
            "ago, last left 'a' (barrier, #1) 40 s ago");
}

TEST(Whereabouts, an_end_is_told_with_what_came_before_it) {
  Whereabouts where = inside();
  where.activity = Activity::stopped;
  where.heartbeat_ns = 90 * kSecond;
  EXPECT_EQ(told(where),
            "stopped (SIGSTOP); it entered 'b' (barrier, #2) 50 s ago and has not left it, last "
            "left 'a' (barrier, #1) 60 s ago, last sign of life 10 s ago");
  where.heartbeat_ns = 0;
  where.activity = Activity::gone;
  where.entered = where.left;
  EXPECT_EQ(told(where), "gone; it left 'a' (barrier, #1) 60 s ago");
  where.activity = Activity::traced;
  EXPECT_EQ(told(where), "held by a debugger; it left 'a' (barrier, #1) 60 s ago");
  where.activity = Activity::asleep;
  where.handle = Whereabouts::Handle::left;
  EXPECT_EQ(told(where), "through (its handle was destroyed); it left 'a' (barrier, #1) 60 s ago");
}

TEST(Whereabouts, other_groups_and_steps_are_named) {
  Whereabouts where = inside();
  where.entered.step = 12;
  EXPECT_EQ(told(where, 2),
            "elsewhere for 50 s since entering 'b' (barrier, #2) of group 'world', last left 'a' "
            "(barrier, #1) of group 'world' 60 s ago (step 12)");
}

TEST(Whereabouts, a_rank_without_operations_has_its_words) {
  Whereabouts where;
  EXPECT_EQ(told(where), "elsewhere before its first operation");
  where.activity = Activity::gone;
  EXPECT_EQ(told(where), "gone; it entered no operation");
}

TEST(Whereabouts, seconds_have_a_decimal_below_ten) {
  EXPECT_EQ(seconds(1'540'000'000), "1.5 s");
  EXPECT_EQ(seconds(41 * kSecond), "41 s");
  EXPECT_EQ(seconds(-5), "0.0 s");
}

}  // namespace
}  // namespace lockstep::comm
