#include "comm/control.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sched.h>
#include <thread>

namespace lockstep::comm {
namespace {

std::shared_ptr<Segment> segment_for(int ranks) {
  auto segment = Segment::create(Control::bytes(ranks));
  Control::initialise(*segment, ranks);
  return segment;
}

TEST(Control, ranks_see_each_others_counters_and_fingerprints) {
  const auto segment = segment_for(2);
  Control first(segment, 0, 2);
  Control second(segment, 1, 2);
  EXPECT_EQ(second.issued(0), 0u);
  Fingerprint fingerprint;
  fingerprint.sequence = 1;
  fingerprint.set_name("one");
  first.post(fingerprint);
  first.publish_stepped(5);
  EXPECT_EQ(second.issued(0), 1u);
  EXPECT_EQ(second.stepped(0), 5u);
  EXPECT_TRUE(same(second.posted(0, 1), fingerprint));
  EXPECT_FALSE(second.left(0));
  first.leave();
  EXPECT_TRUE(second.left(0));
  EXPECT_EQ(first.group_id(), second.group_id());
}

TEST(Control, groups_have_different_ids) {
  EXPECT_NE(Control(segment_for(1), 0, 1).group_id(), Control(segment_for(1), 0, 1).group_id());
}

TEST(Control, memory_of_ranks_and_sets_does_not_overlap_and_ends_with_the_segment) {
  constexpr int kRanks = 3;
  const auto segment = segment_for(kRanks);
  const Control control(segment, 0, kRanks);
  std::vector<std::pair<std::byte*, std::int64_t>> areas;
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < Control::kSlots; ++i) {
      areas.emplace_back(control.slot(i, r), Control::kSlotBytes);
    }
    for (int i = 0; i < Control::kStages; ++i) {
      areas.emplace_back(control.stage(i, r), Control::kStageBytes);
    }
    for (const Control::Lane lane : {Control::Lane::collective, Control::Lane::pair}) {
      for (int to = 0; to < kRanks; ++to) {
        areas.emplace_back(reinterpret_cast<std::byte*>(&control.line(lane, r, to)), sizeof(Line));
      }
    }
  }
  std::sort(areas.begin(), areas.end());
  for (std::size_t i = 0; i < areas.size(); ++i) {
    const auto* end = areas[i].first + areas[i].second;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(areas[i].first) % 64, 0u);
    EXPECT_EQ(end, i + 1 < areas.size() ? areas[i + 1].first : segment->data() + segment->bytes());
  }
}

TEST(Control, a_segment_of_something_else_is_refused) {
  const auto zeroed = Segment::create(Control::bytes(2));
  EXPECT_THROW(Control(zeroed, 0, 2), SystemError);
  EXPECT_THROW(Control(segment_for(3), 0, 2), SystemError);
}

TEST(Control, counts_the_processors_its_ranks_may_use) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  const auto segment = segment_for(2);
  const Control first(segment, 0, 2);
  const Control second(segment, 1, 2);
  EXPECT_EQ(first.cores(), CPU_COUNT(&set));
}

TEST(Control, a_sleeper_is_woken_by_every_kind_of_news) {
  const auto segment = segment_for(2);
  Control sleeper(segment, 0, 2);
  Control other(segment, 1, 2);
  const std::vector<std::function<void()>> news{[&] { other.publish_stepped(1); },
                                                [&] { other.post({.sequence = 1}); },
                                                [&] {
                                                  other.fail({Failure::Kind::mismatch, -1, "news"});
                                                },
                                                [&] { other.leave(); }};
  for (const auto& tell : news) {
    const std::uint32_t ticket = sleeper.begin_sleep();
    std::thread thread(tell);
    const auto begin = std::chrono::steady_clock::now();
    sleeper.sleep(ticket, std::chrono::seconds(20));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    sleeper.end_sleep();
    thread.join();
  }
}

TEST(Control, news_between_the_last_look_and_sleep_is_not_slept_over) {
  const auto segment = segment_for(2);
  Control sleeper(segment, 0, 2);
  Control other(segment, 1, 2);
  const std::uint32_t ticket = sleeper.begin_sleep();
  other.publish_stepped(1);
  const auto begin = std::chrono::steady_clock::now();
  sleeper.sleep(ticket, std::chrono::seconds(20));
  sleeper.end_sleep();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Control, small_messages_alternate_between_two_sets) {
  Control control(segment_for(1), 0, 1);
  const int first = control.next_slots();
  const int second = control.next_slots();
  EXPECT_NE(first, second);
  EXPECT_EQ(control.next_slots(), first);
}

}  // namespace
}  // namespace lockstep::comm
