#include "comm/watch.h"

#include "comm/texts.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::expect_match;
using test::run_ranks;
using test::text_of;
using test::threw;

// Long enough for a busy machine to run every rank in between.
constexpr milliseconds kDeadline{1500};

// Ranks other than `late` run the body; `late` comes when they are through.
test::Outcomes with_late_rank(std::vector<Group>& groups, int late,
                              const std::function<void(Group&)>& body) {
  std::atomic<std::size_t> through = 0;
  return run_ranks(groups, [&](Group& group) {
    if (group.rank() == late) {
      while (through + 1 < groups.size()) {
        std::this_thread::sleep_for(milliseconds(5));
      }
      return;
    }
    try {
      body(group);
    } catch (...) {
      ++through;
      throw;
    }
    ++through;
  });
}

TEST(Watch, H42_a_deadline_names_who_is_behind_and_what_it_did_last) {
  auto groups = Group::of_threads(3, {.deadline = kDeadline});
  test::on_ranks(groups, [](Group& group) { group.barrier({.name = "start"}); });
  const auto begin = steady_clock::now();
  const auto outcomes = with_late_rank(groups, 2, [](Group& group) {
    std::vector<float> values(1000);
    group.all_reduce(std::span(values), {.name = "bucket 3"}).wait();
  });
  const auto took = steady_clock::now() - begin;
  EXPECT_GE(took, kDeadline);
  EXPECT_LT(took, milliseconds(8000));
  for (int r = 0; r < 2; ++r) {
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    EXPECT_TRUE(threw<TimedOut>(outcome)) << text_of(outcome);
    expect_match(
        text_of(outcome),
        R"(waits for 'bucket 3' \(all_reduce f32\[1000\], #2\) and rank 2 gave no sign of )"
        R"(life for the deadline of 1500 ms.  rank 2: elsewhere for [0-9]\.[0-9] s since )"
        R"(leaving 'start' \(barrier, #1\))");
    for (const char* waiting : {"0", "1"}) {
      expect_match(text_of(outcome),
                   "  rank " + std::string(waiting) +
                       R"(: waiting for 'bucket 3' \(all_reduce f32\[1000\], #2\) for [0-9.]+ s, )"
                       R"(last left 'start' \(barrier, #1\) [0-9.]+ s ago)");
    }
  }
}

TEST(Watch, a_rank_inside_an_operation_is_told_apart_from_one_that_left_it) {
  auto groups = Group::of_threads(2, {.deadline = kDeadline});
  std::atomic<bool> over = false;
  const auto outcomes = run_ranks(groups, [&](Group& group) {
    std::vector<float> values(10);
    Work work = group.all_reduce(std::span(values), {.name = "issued"});
    if (group.rank() == 1) {
      while (!over) {
        std::this_thread::sleep_for(milliseconds(5));
      }
      work.wait();
      return;
    }
    try {
      work.wait();
      group.barrier();
    } catch (...) {
      over = true;
      throw;
    }
  });
  EXPECT_TRUE(threw<TimedOut>(outcomes[0]));
  expect_match(
      text_of(outcomes[0]),
      R"(rank 1: elsewhere for [0-9.]+ s since entering 'issued' \(all_reduce f32\[10\], #1\))");
}

TEST(Watch, a_rank_that_never_entered_is_said_so) {
  auto groups = Group::of_threads(2, {.deadline = kDeadline});
  const auto outcomes = with_late_rank(groups, 1, [](Group& group) { group.barrier(); });
  EXPECT_TRUE(threw<TimedOut>(outcomes[0]));
  expect_match(text_of(outcomes[0]), "rank 1: elsewhere before its first operation");
}

// A rank that computes longer than the deadline is no failure as long as nobody waits that long.
TEST(Watch, the_deadline_starts_with_the_wait) {
  auto groups = Group::of_threads(2, {.deadline = kDeadline});
  test::on_ranks(groups, [](Group& group) {
    group.barrier();
    std::this_thread::sleep_for(milliseconds(2000 + 100 * group.rank()));
    group.barrier();
  });
}

// A rank that waits itself gives signs of life.
TEST(Watch, only_the_silent_rank_times_out) {
  auto groups = Group::of_threads(3, {.deadline = kDeadline});
  const auto outcomes = with_late_rank(groups, 0, [](Group& group) {
    if (group.rank() == 2) {
      std::this_thread::sleep_for(kDeadline * 2 / 3);
    }
    group.barrier();
  });
  for (const std::size_t r : {1u, 2u}) {
    EXPECT_TRUE(threw<TimedOut>(outcomes[r]));
    expect_match(text_of(outcomes[r]), "and rank 0 gave no sign of life");
    expect_match(text_of(outcomes[r]), "\n  rank 0: elsewhere before its first operation");
    expect_match(text_of(outcomes[r]), "\n  rank 2: waiting for barrier");
  }
}

TEST(Watch, a_handle_destroyed_early_is_a_lost_peer) {
  auto groups = Group::of_threads(3, {.deadline = std::chrono::seconds(60)});
  const auto begin = steady_clock::now();
  const auto outcomes = run_ranks(groups, [](Group& group) {
    group.barrier({.name = "together"});
    if (group.rank() == 1) {
      const Group gone = std::move(group);
      return;
    }
    group.barrier({.name = "apart"});
  });
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(outcomes[1], nullptr);
  for (const std::size_t r : {0u, 2u}) {
    EXPECT_TRUE(threw<PeerLost>(outcomes[r])) << text_of(outcomes[r]);
    expect_match(text_of(outcomes[r]),
                 R"(rank 1 left \(its handle was destroyed; every rank must make the same calls\) )"
                 R"(while rank [0-9] needs it for 'apart' \(barrier, #2\).  rank 1: )"
                 R"([^;]*[;s][^;]* 'together' \(barrier, #1\))");
    try {
      std::rethrow_exception(outcomes[r]);
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 1);
    }
  }
}

// What one rank does last, others need not have seen when it goes.
TEST(Watch, leaving_after_the_last_operation_is_no_loss) {
  for (int round = 0; round < 30; ++round) {
    auto groups = Group::of_threads(4, {.deadline = std::chrono::seconds(60)});
    test::on_ranks(groups, [](Group& group) {
      const auto memory = group.allocate_symmetric(4096, "last");
      group.all_reduce(memory.span(0, 1024, Dtype::f32)).wait();
      const Group gone = std::move(group);
    });
  }
}

TEST(Watch, H42_the_deadline_bounds_sub_groups) {
  auto groups = Group::of_threads(4, {.deadline = kDeadline});
  const auto outcomes = run_ranks(groups, [](Group& group) {
    auto half = group.split(group.rank() / 2, group.rank());
    EXPECT_EQ(half->deadline(), kDeadline);
    if (group.rank() == 3) {
      std::this_thread::sleep_for(2 * kDeadline);
      return;
    }
    half->barrier();
  });
  EXPECT_EQ(outcomes[0], nullptr);
  EXPECT_EQ(outcomes[1], nullptr);
  EXPECT_TRUE(threw<TimedOut>(outcomes[2])) << text_of(outcomes[2]);
  expect_match(text_of(outcomes[2]),
               "group 'world/1': rank 0 waits for barrier .#1. and rank 1 gave no sign.*"
               "\n  the world's rank 3, here 1: elsewhere for [0-9.]+ s since leaving split "
               ".*of group 'world'\n  the world's rank 0: ");
}

// Each gives signs of life where it waits, and none where the other waits.
TEST(Watch, ranks_that_wait_for_each_other_in_two_groups_time_out_and_say_so) {
  auto groups = Group::of_threads(2, {.deadline = kDeadline});
  const auto outcomes = run_ranks(groups, [](Group& group) {
    Group second = group.duplicate();
    Group& mine = group.rank() == 0 ? group : second;
    mine.barrier({.name = "first"});
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<TimedOut>(outcome) || threw<PeerLost>(outcome)) << text_of(outcome);
  }
  const bool zero = threw<TimedOut>(outcomes[0]);
  EXPECT_TRUE(zero || threw<TimedOut>(outcomes[1]));
  // The other one may have given up in the same moment.
  const std::string there =
      "(waiting for|elsewhere for [0-9.]+ s since entering) 'first' .barrier, ";
  expect_match(text_of(outcomes[zero ? 0 : 1]), zero ? "rank 1: " + there + "#1. of group 'world/0'"
                                                     : "rank 0: " + there + "#2. of group 'world'");
}

TEST(Watch, H42_the_deadline_bounds_allocation_and_splitting) {
  for (const bool allocate : {true, false}) {
    auto groups = Group::of_threads(2, {.deadline = kDeadline});
    const auto outcomes = with_late_rank(groups, 1, [&](Group& group) {
      if (allocate) {
        group.allocate_symmetric(64, "gradients");
      } else {
        group.split(0, 0);
      }
    });
    EXPECT_TRUE(threw<TimedOut>(outcomes[0])) << text_of(outcomes[0]);
  }
}

}  // namespace
}  // namespace lockstep
