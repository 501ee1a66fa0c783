// Everything that can go wrong × every collective: the right error on every rank, nothing left.
#include "comm/fault_rounds.h"
#include "comm/networks.h"
#include "comm/texts.h"
#include "comm/worlds.h"
#include "support/file_size_limit.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using comm::Kind;
using std::chrono::milliseconds;
using test::Call;
using test::kEveryKind;
using test::run_ranks;
using test::text_of;
using test::threw;

constexpr int kRanks = test::kFaultRanks;
constexpr std::int64_t kCount = 3000;

TEST(FaultMatrix, C35_kill_of_each_rank_inside_each_collective) {
  test::kill_each_rank_inside_each_collective(0);
}

TEST(FaultMatrix, C35_kill_inside_each_algorithm) { test::kill_a_rank_inside_each_algorithm(0); }

TEST(FaultMatrix, exit_without_a_word_inside_each_collective) {
  test::exit_inside_each_collective(0);
}

TEST(FaultMatrix, C35_stopped_within_the_deadline_in_each_collective) {
  for (const Kind kind : kEveryKind) {
    test::stop_within_the_deadline({.kind = kind}, static_cast<int>(kind) % kRanks);
  }
}

TEST(FaultMatrix, C35_stopped_past_the_deadline_in_each_collective_writes_into_no_reused_memory) {
  const std::vector<Kind> kinds(kEveryKind.begin(), kEveryKind.end());
  const auto half = kinds.begin() + 5;
  test::stop_past_the_deadline({kinds.begin(), half}, 0);
  test::stop_past_the_deadline({half, kinds.end()}, 1);
}

// Of ranks that are threads of this process, with and without shared memory.
enum class Way : std::uint8_t { memory, network };

class FaultOfCalls : public ::testing::TestWithParam<Way> {
 protected:
  // What each rank threw.
  static test::Outcomes outcomes(milliseconds deadline,
                                 const std::function<void(Group&, test::Room&)>& body) {
    auto groups = GetParam() == Way::memory
                      ? Group::of_threads(kRanks, {.deadline = deadline})
                      : test::groups_on_a_network(kRanks, {.deadline = deadline});
    return run_ranks(groups, [&](Group& group) {
      test::Room room(group.rank(), kRanks, kCount);
      body(group, room);
    });
  }
  // Rank 1 enters `other` in place of `call`. In a ring of messages, its receiver sees that.
  static void expect_mismatch(const Call& call,
                              const std::function<void(Group&, test::Room&)>& other,
                              const std::string& what) {
    SCOPED_TRACE(call.text() + ", " + what);
    const auto threw_what = outcomes(std::chrono::seconds(60), [&](Group& group, auto& room) {
      group.rank() == 1 ? other(group, room) : room.enter(group, call, "step");
      group.barrier();
    });
    for (const auto& outcome : threw_what) {
      EXPECT_TRUE(threw<Mismatch>(outcome)) << text_of(outcome);
      EXPECT_NE(text_of(outcome).find("rank 1"), std::string::npos) << text_of(outcome);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, FaultOfCalls, ::testing::Values(Way::memory, Way::network),
                         [](const auto& tested) {
                           return tested.param == Way::memory ? "memory" : "network";
                         });

TEST_P(FaultOfCalls, another_count_dtype_name_or_kind_is_a_mismatch_on_every_rank) {
  for (const Kind kind : kEveryKind) {
    const Call call{.kind = kind};
    expect_mismatch(
        call, [&](Group& group, auto& room) { room.enter(group, call, "other"); }, "another name");
    if (kind == Kind::barrier) {
      continue;
    }
    std::vector<float> values(kCount);
    const Span fewer(values.data(), kCount - kRanks, Dtype::f32);
    const Span integers(values.data(), kCount, Dtype::i32);
    expect_mismatch(
        call, [&](Group& group, auto& room) { room.enter(group, call, "step", fewer); }, "count");
    expect_mismatch(
        call, [&](Group& group, auto& room) { room.enter(group, call, "step", integers); },
        "dtype");
    if (kind != Kind::send) {
      expect_mismatch(
          call,
          [&](Group& group, auto& room) { room.enter(group, {.kind = Kind::barrier}, "step"); },
          "another kind");
    }
  }
}

TEST_P(FaultOfCalls, another_order_is_a_mismatch_on_every_rank) {
  for (std::size_t i = 0; i + 1 < kEveryKind.size(); ++i) {
    const Call first{.kind = kEveryKind[i]};
    const Call second{.kind = kEveryKind[(i + 1) % (kEveryKind.size() - 2)]};
    if (first.kind == Kind::send) {
      continue;  // in no order with the collectives
    }
    SCOPED_TRACE(first.text() + " and " + second.text());
    const auto threw_what = outcomes(std::chrono::seconds(60), [&](Group& group, auto& room) {
      room.enter(group, group.rank() == 1 ? second : first, "a");
      room.enter(group, group.rank() == 1 ? first : second, "b");
    });
    for (const auto& outcome : threw_what) {
      EXPECT_TRUE(threw<Mismatch>(outcome)) << text_of(outcome);
    }
  }
}

// All kinds at once: each takes the deadline.
TEST_P(FaultOfCalls, H42_a_rank_that_never_comes_is_named_on_every_rank) {
  const auto wait_for_rank_1 = [](const Call& call) {
    std::atomic<int> waiting = kRanks - 1;
    return outcomes(std::chrono::seconds(1), [&](Group& group, auto& room) {
      while (group.rank() == 1 && waiting > 0) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      try {
        if (group.rank() != 1) {
          room.enter(group, call, "step");
        }
        group.barrier();  // rank 1 learns it late; and a message to it leaves without it
      } catch (...) {
        --waiting;
        throw;
      }
    });
  };
  std::vector<std::thread> worlds;
  for (const Kind kind : kEveryKind) {
    worlds.emplace_back([kind, &wait_for_rank_1] {
      for (const auto& outcome : wait_for_rank_1({.kind = kind})) {
        EXPECT_TRUE(threw<TimedOut>(outcome)) << comm::name_of(kind) << ": " << text_of(outcome);
        test::expect_match(text_of(outcome),
                           "and rank 1 (gave no sign of life for|did not do its part within)");
      }
    });
  }
  for (auto& world : worlds) {
    world.join();
  }
}

TEST_P(FaultOfCalls, works_may_be_waited_for_in_another_order_on_each_rank) {
  const auto threw_what = outcomes(std::chrono::seconds(60), [&](Group& group, auto&) {
    std::vector<float> a(kCount, 1.0f), b(kCount, 2.0f), c(kCount, 3.0f);
    std::array<Work, 3> works{group.all_reduce(std::span(a)), group.all_reduce(std::span(b)),
                              group.all_reduce(std::span(c))};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto rank = static_cast<std::size_t>(group.rank());
      works[(rank == 1 ? 2 * i + rank : i + rank) % 3].wait();
    }
    if (a[0] != 3.0f || b[0] != 6.0f || c[kCount - 1] != 9.0f) {
      throw std::runtime_error("wrong sums");
    }
  });
  for (const auto& outcome : threw_what) {
    EXPECT_EQ(outcome, nullptr) << text_of(outcome);
  }
}

// Each waits in a group that the others enter later: nobody hangs.
TEST_P(FaultOfCalls, groups_entered_in_crossed_order_end_with_the_deadline) {
  const auto threw_what = outcomes(milliseconds(500), [&](Group& group, auto&) {
    Group second = group.duplicate();
    (group.rank() == 1 ? second : group).barrier({.name = "first"});
    (group.rank() == 1 ? group : second).barrier({.name = "second"});
  });
  for (const auto& outcome : threw_what) {
    EXPECT_TRUE(threw<TimedOut>(outcome) || threw<PeerLost>(outcome)) << text_of(outcome);
  }
}

TEST(FaultMatrix, memory_that_cannot_be_had_is_refused_on_every_rank_and_leaves_nothing) {
  for (const bool beyond_this_host : {true, false}) {
    test::Processes ranks;
    for (int r = 0; r < kRanks; ++r) {
      ranks.start([&ranks, r, beyond_this_host] {
        Group group(
            comm::form_world({r, kRanks, ranks.job(), {.deadline = std::chrono::seconds(60)}}));
        // Of one process only; the others would have it.
        const test::FileSizeLimit limit(!beyond_this_host && r == 0 ? rlim_t{1} << 20
                                                                    : RLIM_INFINITY);
        const std::int64_t bytes = beyond_this_host ? std::int64_t{1} << 50 : 8 << 20;
        group.allocate_symmetric(bytes, "gradients");
      });
    }
    for (int r = 0; r < kRanks; ++r) {
      const test::Ended ended = ranks.end(r);
      EXPECT_EQ(ended.text.rfind("SystemError", 0), 0u) << ended.text;
      const char* what = beyond_this_host ? "gradients" : "25165824 bytes: File too large";
      EXPECT_NE(ended.text.find(what), std::string::npos) << ended.text;
    }
    test::expect_nothing_left(ranks.job());
  }
}

}  // namespace
}  // namespace lockstep
