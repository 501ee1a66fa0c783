#include "comm/communicator.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep {
namespace {

using test::on_ranks;
using test::run_ranks;
using test::text_of;
using test::threw;

std::vector<Group> threads(int ranks,
                           std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  return Group::of_threads(ranks, {.deadline = deadline});
}

float* floats(const SymmetricSpan& span) { return static_cast<float*>(span.data()); }

class Communicator : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Communicator, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(Communicator, works_may_be_waited_for_in_any_order) {
  on_ranks(GetParam(), [](Group& group) {
    constexpr int kWorks = 12;
    auto memory = group.allocate_symmetric(kWorks * 1024, "many");
    std::vector<Work> works;
    std::vector<std::vector<float>> plain(kWorks);
    for (int i = 0; i < kWorks; ++i) {
      const auto span = memory.span(i * 1024, 100, Dtype::f32);
      std::fill_n(floats(span), 100, static_cast<float>(i + group.rank()));
      works.push_back(group.all_reduce(span, {.name = "symmetric"}));
      auto& values = plain[static_cast<std::size_t>(i)];
      values.assign(i % 2 == 0 ? 10 : 5'000, static_cast<float>(i));
      works.push_back(group.all_reduce(std::span(values), {.name = "plain"}));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) {
      work->wait();
    }
    const int ranks = group.size();
    for (int i = 0; i < kWorks; ++i) {
      const float expected = static_cast<float>(i * ranks + ranks * (ranks - 1) / 2);
      EXPECT_EQ(floats(memory.span(i * 1024, 100, Dtype::f32))[99], expected);
      EXPECT_EQ(plain[static_cast<std::size_t>(i)].back(), static_cast<float>(i * ranks));
    }
  });
}

TEST_P(Communicator, a_rank_may_run_far_ahead_in_issuing) {
  on_ranks(GetParam(), [](Group& group) {
    const int operations = 3 * static_cast<int>(comm::Control::kRing);
    std::vector<std::int32_t> values(static_cast<std::size_t>(operations));
    std::vector<Work> works;
    for (int i = 0; i < operations; ++i) {
      auto& value = values[static_cast<std::size_t>(i)];
      value = i;
      works.push_back(group.all_reduce(std::span(&value, 1)));
    }
    for (auto& work : works) {
      work.wait();
    }
    for (int i = 0; i < operations; ++i) {
      ASSERT_EQ(values[static_cast<std::size_t>(i)], i * group.size());
    }
  });
}

TEST_P(Communicator, done_and_progress_finish_a_work_without_wait) {
  on_ranks(GetParam(), [](Group& group) {
    std::vector<float> values(100'000, 1.0f);
    Work work = group.all_reduce(std::span(values));
    while (!work.done()) {
      group.progress();
      std::this_thread::yield();
    }
    EXPECT_EQ(values[99'999], static_cast<float>(group.size()));
    work.wait();  // a second one returns at once
    EXPECT_TRUE(work.done());
  });
}

// The case the engine lives on: a work issued early is done by the time its wait() comes, because
// issuing others advanced it.
TEST(CommunicatorProgress, issuing_advances_what_is_outstanding) {
  auto groups = threads(2);
  std::atomic<int> ready = 0;
  on_ranks(groups, [&](Group& group) {
    std::vector<float> first(10, 1.0f), second(10, 1.0f);
    Work early = group.all_reduce(std::span(first));
    ++ready;
    while (ready < 2) {
      std::this_thread::yield();
    }
    Work late = group.all_reduce(std::span(second));
    EXPECT_EQ(first[0], 2.0f);
    early.wait();
    late.wait();
  });
}

TEST(CommunicatorPoison, after_a_failure_every_call_repeats_the_first_cause) {
  auto groups = threads(2);
  on_ranks(groups, [](Group& group) {
    EXPECT_THROW(group.barrier({.name = group.rank() == 0 ? "left" : "right"}), Mismatch);
    for (int i = 0; i < 2; ++i) {
      try {
        group.barrier();
        ADD_FAILURE() << "a poisoned group went on";
      } catch (const GroupPoisoned& error) {
        EXPECT_NE(std::string(error.what()).find("'left'"), std::string::npos) << error.what();
      }
    }
    EXPECT_THROW(group.progress(), GroupPoisoned);
    EXPECT_THROW(group.allocate_symmetric(64, "late"), GroupPoisoned);
    EXPECT_THROW(group.split(0, 0), GroupPoisoned);
  });
}

TEST(CommunicatorPoison, a_dropped_work_fails_the_peers_and_its_own_rank) {
  auto groups = threads(3);
  const auto outcomes = run_ranks(groups, [](Group& group) {
    std::vector<float> values(10);
    if (group.rank() == 1) {
      Work dropped = group.all_reduce(std::span(values), {.name = "bucket 3"});
      dropped = Work();
    }
    group.all_reduce(std::span(values), {.name = "bucket 3"}).wait();
    group.barrier();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<GroupPoisoned>(outcome)) << text_of(outcome);
    EXPECT_NE(text_of(outcome).find("rank 1 dropped 'bucket 3' (all_reduce f32[10], #1) without "
                                    "waiting for it"),
              std::string::npos)
        << text_of(outcome);
  }
}

TEST(CommunicatorPoison, a_group_destroyed_with_a_work_in_flight_fails_the_peers) {
  auto groups = threads(2);
  const auto outcomes = run_ranks(groups, [&](Group& group) {
    std::vector<float> values(10);
    Work work = group.all_reduce(std::span(values));
    if (group.rank() == 0) {
      { const Group gone = std::move(group); }
      work.wait();
    }
    group.barrier();
  });
  EXPECT_TRUE(threw<GroupPoisoned>(outcomes[0]));
  EXPECT_TRUE(threw<GroupPoisoned>(outcomes[1])) << text_of(outcomes[1]);
  EXPECT_NE(text_of(outcomes[1]).find("rank 0 destroyed its handle"), std::string::npos);
}

TEST(CommunicatorPoison, an_exception_from_on_reduced_reaches_the_caller_and_poisons_the_peers) {
  auto groups = threads(2);
  const auto outcomes = run_ranks(groups, [](Group& group) {
    const auto span = group.allocate_symmetric(1024, "shown").span(0, 256, Dtype::f32);
    ReduceOptions options;
    if (group.rank() == 1) {
      options.on_reduced = [](std::size_t, std::int64_t, std::int64_t, const void*) {
        throw std::out_of_range("from the callback");
      };
    }
    group.all_reduce(span, options).wait();
  });
  EXPECT_TRUE(threw<GroupPoisoned>(outcomes[0])) << text_of(outcomes[0]);
  EXPECT_EQ(text_of(outcomes[0]), "group 'world', rank 1: from the callback");
  EXPECT_TRUE(threw<std::out_of_range>(outcomes[1]));
}

TEST(CommunicatorPoison, calls_from_on_reduced_are_refused) {
  Group group = Group::alone();
  const auto span = group.allocate_symmetric(64, "shown").span(0, 16, Dtype::f32);
  ReduceOptions options;
  options.on_reduced = [&](std::size_t, std::int64_t, std::int64_t, const void*) {
    group.barrier();
  };
  EXPECT_THROW(group.all_reduce(span, options).wait(), UsageError);
}

TEST(CommunicatorPoison, one_group_failing_leaves_another_alone) {
  auto groups = threads(2);
  on_ranks(groups, [](Group& group) {
    auto other = group.split(0, group.rank());
    EXPECT_THROW(group.barrier({.name = group.rank() == 0 ? "a" : "b"}), Mismatch);
    std::int64_t value = 1;
    other->all_reduce(std::span(&value, 1)).wait();
    EXPECT_EQ(value, 2);
  });
}

}  // namespace
}  // namespace lockstep
