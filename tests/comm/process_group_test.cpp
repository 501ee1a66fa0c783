// Groups of real processes: the same operations, and what happens when processes die or stop.
#include "comm/formation.h"
#include "comm/from_environment.h"
#include "comm/processes.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <thread>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Ended;
using test::Processes;

using Body = std::function<void(Group&)>;

constexpr milliseconds kLong = std::chrono::seconds(60);

Group join(const std::string& job, int rank, int size, milliseconds deadline) {
  return Group(comm::form_world({rank, size, job, {.deadline = deadline}}));
}

// Starts `size` ranks that run the body on their group.
void start_all(Processes& ranks, int size, milliseconds deadline, const Body& body) {
  for (int r = 0; r < size; ++r) {
    ranks.start([&ranks, r, size, deadline, body] {
      Group group = join(ranks.job(), r, size, deadline);
      body(group);
    });
  }
}

std::vector<Ended> end_all(Processes& ranks, int size) {
  std::vector<Ended> ended;
  for (int r = 0; r < size; ++r) {
    ended.push_back(ranks.end(r));
  }
  return ended;
}

// Sums in symmetric and plain memory, in place and by a schedule, over and over.
void work_on(Group& group, int rounds) {
  const auto span = group.allocate_symmetric(40'000, "work").span(0, 10'000, Dtype::f32);
  auto* data = static_cast<float*>(span.data());
  std::vector<float> plain(100'000), sent(100'000);
  for (int round = 0; round < rounds; ++round) {
    std::fill_n(data, 10'000, static_cast<float>(group.rank() + round));
    std::fill(plain.begin(), plain.end(), 1.0f);
    std::fill(sent.begin(), sent.end(), 1.0f);
    Work first = group.all_reduce(span, {.name = "symmetric"});
    Work second = group.all_reduce(std::span(plain), {.name = "plain"});
    Work third = group.all_reduce(
        std::span(sent),
        {.name = "sent", .algorithm = round % 2 == 0 ? Algorithm::ring : Algorithm::tree});
    third.wait();
    second.wait();
    first.wait();
    const int sum = group.size() * (group.size() - 1) / 2 + round * group.size();
    if (data[9'999] != static_cast<float>(sum) ||
        plain[99'999] != static_cast<float>(group.size()) || sent != plain) {
      throw std::runtime_error("wrong sum in round " + std::to_string(round));
    }
  }
}

void expect_names(const std::string& text, const std::string& kind, const std::string& part) {
  EXPECT_EQ(text.rfind(kind, 0), 0u) << text;
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

class ProcessGroup : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProcessGroup, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(ProcessGroup, collectives_allocation_and_split_work) {
  Processes ranks;
  start_all(ranks, GetParam(), kLong, [](Group& group) {
    work_on(group, 5);
    auto part = group.split(group.rank() % 2, group.rank());
    work_on(*part, 5);
  });
  for (const Ended& ended : end_all(ranks, GetParam())) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

TEST(ProcessGroupMisuse, ranks_that_disagree_all_get_the_same_mismatch) {
  Processes ranks;
  start_all(ranks, 3, kLong, [](Group& group) {
    std::vector<float> values(10);
    group.rank() == 2 ? group.barrier() : group.all_reduce(std::span(values)).wait();
  });
  const auto ended = end_all(ranks, 3);
  for (const Ended& one : ended) {
    // Rank 0 or 1 stands for the other side: whoever was there when the mismatch was seen.
    expect_names(one.text, "Mismatch", "rank 2: barrier;");
    expect_names(one.text, "Mismatch", ": all_reduce f32[10] sum, plain, direct;");
    EXPECT_EQ(one.text, ended[0].text);
  }
}

// The ways in which rank 2 of 4 goes in the middle of its work.
struct End {
  const char* name;
  std::function<void()> go;
};

TEST(ProcessGroupLoss, C35_whoever_dies_in_the_middle_is_named_on_all_others_within_a_second) {
  const std::vector<End> ends{{"kill -9", [] { ::raise(SIGKILL); }},
                              {"_exit", [] { ::_exit(3); }},
                              {"SIGSEGV", [] {
                                 ::signal(SIGSEGV, SIG_DFL);
                                 ::raise(SIGSEGV);
                               }}};
  for (const End& end : ends) {
    Processes ranks;
    start_all(ranks, 4, kLong, [&](Group& group) {
      work_on(group, 3);
      if (group.rank() == 2) {
        end.go();
      }
      work_on(group, 1'000'000);
    });
    EXPECT_FALSE(ranks.end(2).clean()) << end.name;
    const auto died = steady_clock::now();
    for (const int r : {0, 1, 3}) {
      const std::string text = ranks.end(r).text;
      expect_names(text, "PeerLost", "rank 2 died while rank");
      EXPECT_NE(text.find("): gone; it "), std::string::npos) << text;
      for (const char* other : {"\n  rank 0 (", "\n  rank 1 (", "\n  rank 3 ("}) {
        EXPECT_NE(text.find(other), std::string::npos) << text;
      }
    }
    EXPECT_LT(steady_clock::now() - died, milliseconds(1000)) << end.name;
  }
}

TEST(ProcessGroupLoss, C35_killed_at_any_moment_of_a_collective) {
  for (int moment = 0; moment < 10; ++moment) {
    Processes ranks;
    start_all(ranks, 3, kLong, [](Group& group) { work_on(group, 1'000'000); });
    std::this_thread::sleep_for(milliseconds(30 + 7 * moment));
    ::kill(ranks.process(moment % 3), SIGKILL);
    for (int r = 0; r < 3; ++r) {
      const Ended ended = ranks.end(r);
      if (r != moment % 3) {
        expect_names(ended.text, "PeerLost", "rank " + std::to_string(moment % 3) + " ");
      }
    }
  }
}

TEST(ProcessGroupLoss, C35_a_rank_stopped_for_less_than_the_deadline_finishes_right) {
  Processes ranks;
  start_all(ranks, 3, std::chrono::seconds(20), [](Group& group) {
    const auto end = steady_clock::now() + milliseconds(1200);
    std::uint8_t go_on = 1;
    while (go_on == 1) {
      work_on(group, 1);
      go_on = steady_clock::now() < end ? 1 : 0;
      group.broadcast(std::span(&go_on, 1), 0).wait();
    }
  });
  std::this_thread::sleep_for(milliseconds(200));
  ::kill(ranks.process(1), SIGSTOP);
  std::this_thread::sleep_for(milliseconds(600));
  ::kill(ranks.process(1), SIGCONT);
  for (const Ended& ended : end_all(ranks, 3)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

TEST(ProcessGroupLoss, C35_a_rank_stopped_for_longer_is_named_with_its_state) {
  Processes ranks;
  start_all(ranks, 3, milliseconds(1500), [](Group& group) { work_on(group, 1'000'000); });
  std::this_thread::sleep_for(milliseconds(500));
  ::kill(ranks.process(1), SIGSTOP);
  for (const int r : {0, 2}) {
    const std::string text = ranks.end(r).text;
    expect_names(text, "TimedOut", "and rank 1 gave no sign of life");
    expect_names(text, "TimedOut", "\n  rank 1 (process ");
    expect_names(text, "TimedOut", "): stopped (SIGSTOP); it ");
    expect_names(text, "TimedOut", "): waiting for ");
  }
}

// Longer than the deadline, and without a call that would be a sign of life.
TEST(ProcessGroupLoss, a_rank_that_computes_for_longer_than_the_deadline_is_not_lost) {
  Processes ranks;
  start_all(ranks, 2, milliseconds(1500), [](Group& group) {
    group.barrier();
    if (group.rank() == 1) {
      const auto end = steady_clock::now() + milliseconds(5000);
      while (steady_clock::now() < end) {
      }
    }
    work_on(group, 2);
  });
  for (const Ended& ended : end_all(ranks, 2)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

TEST(ProcessGroupLoss, a_rank_that_sleeps_for_longer_than_the_deadline_is_named) {
  Processes ranks;
  start_all(ranks, 2, milliseconds(1500), [](Group& group) {
    group.mark_step(7);
    group.barrier({.name = "start"});
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(15));
    }
    group.barrier({.name = "step"});
  });
  const std::string text = ranks.end(0).text;
  expect_names(text, "TimedOut", "): asleep for ");
  expect_names(text, "TimedOut", " s since leaving 'start' (barrier, #1) (step 7)");
}

// Until its group fails. Then the memory of the collectives is freed.
void work_until_it_fails(Group group, std::vector<float>& plain) {
  const auto span = group.allocate_symmetric(4 << 20, "work").span(0, 1 << 20, Dtype::f32);
  try {
    while (true) {
      Work symmetric = group.all_reduce(span, {.name = "symmetric"});
      group.all_reduce(std::span(plain), {.name = "plain"}).wait();
      symmetric.wait();
    }
  } catch (const TimedOut&) {
  }
}

// The stopped rank was in the middle of writing results to its peers, and goes on with it.
TEST(ProcessGroupLoss,
     C35_a_rank_that_goes_on_after_the_deadline_writes_nothing_into_reused_memory) {
  Processes ranks;
  start_all(ranks, 2, milliseconds(1500), [](Group& group) {
    const int rank = group.rank();
    std::vector<float> plain(1 << 20);
    work_until_it_fails(std::move(group), plain);
    if (rank == 1) {
      return;
    }
    Group next = Group::alone();
    const auto span = next.allocate_symmetric(4 << 20, "next").span(0, 1 << 20, Dtype::f32);
    auto* data = static_cast<float*>(span.data());
    std::fill_n(data, span.count, 42.0f);
    std::ranges::fill(plain, 42.0f);
    std::this_thread::sleep_for(milliseconds(3000));  // meanwhile the other one goes on
    if (std::count(data, data + span.count, 42.0f) != span.count ||
        std::ranges::count(plain, 42.0f) != std::ssize(plain)) {
      throw std::runtime_error("memory changed after the failure");
    }
  });
  std::this_thread::sleep_for(milliseconds(700));
  ::kill(ranks.process(1), SIGSTOP);
  std::this_thread::sleep_for(milliseconds(3500));
  ::kill(ranks.process(1), SIGCONT);
  for (const Ended& ended : end_all(ranks, 2)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

// A rank that finds out last, or was busy elsewhere, is told the first cause as well.
TEST(ProcessGroupLoss, H41_a_rank_that_fails_between_rendezvous_and_first_use_is_named) {
  Processes ranks;
  start_all(ranks, 3, kLong, [](Group& group) {
    if (group.rank() == 1) {
      ::_exit(7);
    }
    std::this_thread::sleep_for(milliseconds(100 + 200 * group.rank()));
    group.barrier({.name = "first"});
  });
  EXPECT_EQ(WEXITSTATUS(ranks.end(1).status), 7);
  for (const int r : {0, 2}) {
    expect_names(ranks.end(r).text, "PeerLost", "rank 1 died");
  }
}

TEST(ProcessGroupLoss, a_rank_that_throws_takes_its_handle_down_and_is_named) {
  Processes ranks;
  start_all(ranks, 3, kLong, [](Group& group) {
    group.barrier({.name = "start"});
    if (group.rank() == 1) {
      throw std::runtime_error("in backward");
    }
    group.barrier({.name = "step"});
  });
  EXPECT_EQ(ranks.end(1).text, "other: in backward");
  for (const int r : {0, 2}) {
    expect_names(ranks.end(r).text, "PeerLost", "rank 1 left");
  }
}

TEST(ProcessGroupLoss, a_forked_child_neither_speaks_for_its_parent_nor_keeps_it_alive) {
  Processes ranks;
  start_all(ranks, 2, kLong, [](Group& group) {
    group.barrier();
    const pid_t child = ::fork();
    if (child == 0) {
      { const Group inherited = std::move(group); }
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    work_on(group, 2);
    if (group.rank() == 1) {
      if (::fork() == 0) {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        ::_exit(0);
      }
      ::raise(SIGKILL);
    }
    group.barrier();
  });
  const auto begin = steady_clock::now();
  expect_names(ranks.end(0).text, "PeerLost", "rank 1 died");
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1500));
}

TEST(ProcessGroupRendezvous, H42_names_the_ranks_that_never_came) {
  Processes ranks;
  const auto begin = steady_clock::now();
  for (const int r : {0, 2}) {
    ranks.start([&, r] { join(ranks.job(), r, 4, milliseconds(2000)); });
  }
  for (const int child : {0, 1}) {
    expect_names(ranks.end(child).text, "TimedOut",
                 "rendezvous of group 'world': ranks 1 and 3 never came within 2000 ms");
  }
  EXPECT_LT(steady_clock::now() - begin, milliseconds(6000));
}

TEST(ProcessGroupRendezvous, H42_names_rank_0_when_it_is_the_one_missing) {
  Processes ranks;
  ranks.start([&] { join(ranks.job(), 1, 2, milliseconds(300)); });
  expect_names(ranks.end(0).text, "TimedOut", "rank 0 never came within 300 ms");
}

TEST(ProcessGroupRendezvous, a_rank_that_dies_on_the_way_is_named) {
  for (const int dying : {0, 1}) {
    Processes ranks;
    for (int r = 0; r < 2; ++r) {
      ranks.start([&, r] { join(ranks.job(), r, 3, kLong); });
    }
    std::this_thread::sleep_for(milliseconds(300));
    ::kill(ranks.process(dying), SIGKILL);
    ranks.end(dying);
    const auto died = steady_clock::now();
    expect_names(ranks.end(1 - dying).text, "PeerLost", "rank " + std::to_string(dying) + " died");
    EXPECT_LT(steady_clock::now() - died, milliseconds(1000));
  }
}

TEST(ProcessGroupRendezvous, a_late_rank_is_waited_for) {
  Processes ranks;
  for (int r = 0; r < 3; ++r) {
    ranks.start([&, r] {
      std::this_thread::sleep_for(milliseconds(150 * ((r + 1) % 3)));
      Group group = join(ranks.job(), r, 3, std::chrono::seconds(20));
      group.barrier();
    });
  }
  for (const Ended& ended : end_all(ranks, 3)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

TEST(ProcessGroupRendezvous, two_processes_with_one_rank_are_a_usage_error_everywhere) {
  Processes ranks;
  for (const int r : {0, 1, 1}) {
    ranks.start([&, r] { join(ranks.job(), r, 3, std::chrono::seconds(10)); });
  }
  for (const Ended& ended : end_all(ranks, 3)) {
    expect_names(ended.text, "UsageError", "rank 1 of 3, and so did another");
  }
}

TEST(ProcessGroupRendezvous, ranks_with_another_size_are_a_usage_error_everywhere) {
  Processes ranks;
  ranks.start([&] { join(ranks.job(), 0, 2, std::chrono::seconds(10)); });
  ranks.start([&] { join(ranks.job(), 1, 3, std::chrono::seconds(10)); });
  for (const Ended& ended : end_all(ranks, 2)) {
    expect_names(ended.text, "UsageError", "rank 1 of 3, expected ranks 1 to 1 of 2");
  }
}

TEST(ProcessGroupRendezvous, jobs_of_one_user_do_not_meet) {
  Processes first, second;
  start_all(first, 2, kLong, [](Group& group) { work_on(group, 20); });
  start_all(second, 2, kLong, [](Group& group) { work_on(group, 20); });
  for (Processes* job : {&first, &second}) {
    for (const Ended& ended : end_all(*job, 2)) {
      EXPECT_TRUE(ended.clean()) << ended.text;
    }
  }
}

TEST(ProcessGroupRendezvous, a_second_world_in_the_same_processes_stands_beside_the_first) {
  Processes ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.start([&, r] {
      Group first = join(ranks.job(), r, 2, kLong);
      Group second = join(ranks.job(), r, 2, kLong);
      // Both allocations are the first of their group, and must not be confused.
      const auto a = first.allocate_symmetric(64, "a").span(0, 16, Dtype::f32);
      const auto b = second.allocate_symmetric(128, "b").span(0, 32, Dtype::f32);
      Work of_first = first.all_reduce(a);
      Work of_second = second.all_reduce(b);
      of_second.wait();
      of_first.wait();
    });
  }
  for (const Ended& ended : end_all(ranks, 2)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

TEST(ProcessGroupLeaks, groups_memory_and_failures_leave_no_descriptor) {
  Processes ranks;
  for (int r = 0; r < 3; ++r) {
    ranks.start([&, r] {
      const std::size_t before = open_descriptors();
      for (int round = 0; round < 3; ++round) {
        Group group = join(ranks.job(), r, 3, kLong);
        work_on(group, 2);
        auto part = group.split(0, r);
        work_on(*part, 2);
        if (round == 2) {
          try {
            group.barrier({.name = r == 0 ? "a" : "b"});
          } catch (const Mismatch&) {
          }
        }
      }
      if (open_descriptors() != before) {
        throw std::runtime_error("descriptors leaked");
      }
    });
  }
  for (const Ended& ended : end_all(ranks, 3)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

TEST(ProcessGroupLeaks, what_a_group_opens_does_not_pass_to_other_programs) {
  Processes ranks;
  start_all(ranks, 2, kLong, [](Group& group) {
    const auto memory = group.allocate_symmetric(64, "kept");
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
      const int descriptor = std::stoi(entry.path().filename().string());
      if (target.find("memfd:lockstep") != std::string::npos &&
          (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) {
        throw std::runtime_error("inheritable: " + target);
      }
    }
  });
  for (const Ended& ended : end_all(ranks, 2)) {
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

}  // namespace
}  // namespace lockstep
