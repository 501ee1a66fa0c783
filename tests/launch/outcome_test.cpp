#include "launch/outcome.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <signal.h>
#include <string>
#include <vector>

namespace lockstep::launch {
namespace {

using Lines = std::vector<std::string>;

// Wait statuses as the kernel encodes them.
constexpr int exited(int status) { return status << 8; }
constexpr int killed(int signal) { return signal; }

RankEnd end_of(int rank, int wait_status, std::int64_t time_ns = 0) {
  RankEnd end;
  end.rank = rank;
  end.wait_status = wait_status;
  end.time_ns = time_ns;
  return end;
}

RankEnd reported(RankEnd end, FailureKind kind, std::int64_t time_ns, const std::string& text) {
  end.report = FailureReport{.rank = end.rank, .kind = kind, .time_ns = time_ns, .text = text};
  return end;
}

RankEnd by_launcher(RankEnd end) {
  end.ended_by = EndedBy::launcher;
  return end;
}

TEST(Outcome, signals_that_say_what_went_wrong_are_explained) {
  for (const auto& [signal, meaning] :
       {std::pair(SIGBUS, "SIGBUS), a file was cut short"), std::pair(SIGXFSZ, "ulimit -f"),
        std::pair(SIGPIPE, "whoever read its output has left")}) {
    RankEnd end;
    end.wait_status = signal;
    const Verdict verdict = judge(std::span(&end, 1), std::nullopt);
    ASSERT_EQ(verdict.lines.size(), 1u);
    EXPECT_NE(verdict.lines[0].find(meaning), std::string::npos) << verdict.lines[0];
  }
}

TEST(Outcome, all_well_is_silent) {
  const std::vector<RankEnd> ends{end_of(0, exited(0)), end_of(1, exited(0))};
  const Verdict verdict = judge(ends, std::nullopt);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.lines, Lines{});
}

TEST(Outcome, H40_causes_by_time_then_consequences_then_who_was_ended) {
  std::vector<RankEnd> ends{
      reported(end_of(0, exited(1), 10), FailureKind::consequence, 5, "peer lost: rank 2"),
      reported(end_of(1, exited(1), 90), FailureKind::cause, 80, "the disk is full"),
      end_of(2, killed(SIGSEGV), 70),
      by_launcher(end_of(3, killed(SIGTERM), 100)),
  };
  const Lines expected{"rank 2: killed by signal 11 (SIGSEGV)", "rank 1: the disk is full",
                       "rank 0: peer lost: rank 2",
                       "rank 3: still running after that, ended by the launcher"};
  std::ranges::sort(ends, {}, &RankEnd::rank);
  do {
    const Verdict verdict = judge(ends, std::nullopt);
    EXPECT_EQ(verdict.lines, expected);
    EXPECT_EQ(verdict.exit_code, 1);
  } while (std::ranges::next_permutation(ends, {}, &RankEnd::rank).found);
}

TEST(Outcome, of_ends_seen_at_once_the_killed_rank_comes_first) {
  const std::vector<RankEnd> ends{end_of(0, exited(1), 7), end_of(1, killed(SIGKILL), 7)};
  EXPECT_EQ(judge(ends, std::nullopt).lines,
            (Lines{"rank 1: killed by signal 9 (SIGKILL)", "rank 0: exited with status 1"}));
}

TEST(Outcome, a_rank_that_reports_nothing_is_quoted) {
  RankEnd end = end_of(0, exited(3));
  end.last_error_line = "cannot open corpus.txt";
  EXPECT_EQ(judge(std::vector{end}, std::nullopt).lines,
            Lines{"rank 0: exited with status 3: cannot open corpus.txt"});
}

TEST(Outcome, a_report_counts_although_the_rank_exited_well) {
  const auto end = reported(end_of(0, exited(0)), FailureKind::cause, 1, "two\nlines");
  const Verdict verdict = judge(std::vector{end}, std::nullopt);
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.lines, Lines{"rank 0: two lines"});
}

TEST(Outcome, ranks_that_say_the_same_share_a_line) {
  std::vector<RankEnd> ends;
  for (const int rank : {0, 1, 2, 3, 5}) {
    ends.push_back(reported(end_of(rank, exited(2)), FailureKind::cause, rank, "bad value"));
  }
  const Verdict verdict = judge(ends, std::nullopt);
  EXPECT_EQ(verdict.lines, Lines{"ranks 0-3 and 5: bad value"});
  EXPECT_EQ(verdict.exit_code, 2);
}

TEST(Outcome, exit_2_only_when_all_that_failed_say_usage) {
  EXPECT_EQ(judge(std::vector{end_of(0, exited(2)), end_of(1, exited(1))}, std::nullopt).exit_code,
            1);
  EXPECT_EQ(judge(std::vector{end_of(0, exited(2)), end_of(1, exited(0))}, std::nullopt).exit_code,
            2);
  EXPECT_EQ(judge(std::vector{end_of(0, exited(2)), by_launcher(end_of(1, killed(SIGTERM)))},
                  std::nullopt)
                .exit_code,
            2);
}

TEST(Outcome, the_users_signal_decides_the_exit_code) {
  const std::vector<RankEnd> ends{by_launcher(end_of(0, killed(SIGINT))),
                                  by_launcher(end_of(1, exited(0)))};
  const Verdict verdict = judge(ends, SIGINT);
  EXPECT_EQ(verdict.exit_code, 130);
  EXPECT_EQ(verdict.lines, Lines{"ended by SIGINT"});
}

TEST(Outcome, names_of_ranks) {
  EXPECT_EQ(name_ranks({4}), "rank 4");
  EXPECT_EQ(name_ranks({1, 0}), "ranks 0 and 1");
  EXPECT_EQ(name_ranks({0, 1, 2}), "ranks 0-2");
  EXPECT_EQ(name_ranks({0, 2, 3}), "ranks 0, 2 and 3");
  EXPECT_EQ(name_ranks({7, 6, 5, 3, 1, 0}), "ranks 0, 1, 3 and 5-7");
}

}  // namespace
}  // namespace lockstep::launch
