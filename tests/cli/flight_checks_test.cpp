#include "cli/flight_checks.h"

#include "comm/flights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using comm::FlightRecorder;
using test::fly;
using Activity = comm::ProcessState::Activity;

constexpr std::int64_t kSecond = 1'000'000'000;

// What four ranks left, at 100 s; by default all of them sleep.
class FlightChecks : public ::testing::Test {
 protected:
  // Each rank's file: operations 1 to `through` of 'world', the last left or not.
  void record(int rank, std::uint64_t through, bool inside, const std::string& last = "") {
    auto& recorder = recorders_[rank];
    recorder =
        std::make_unique<FlightRecorder>(folder_.path(), FlightRecorder::Identity{77, rank, 4});
    for (std::uint64_t n = 1; n <= through; ++n) {
      const bool is_last = n == through;
      const std::string name = "step " + std::to_string(n);
      fly(*recorder, n, is_last && !last.empty() ? last : name, is_last && inside);
    }
  }
  void record_all(std::uint64_t through, bool inside) {
    for (int rank = 0; rank < 4; ++rank) {
      record(rank, through, inside);
    }
  }
  FlightRecorder& recorder(int rank) { return *recorders_.at(rank); }
  void close(int rank) { recorders_.erase(rank); }
  void close_all() { recorders_.clear(); }

  std::vector<Finding> findings(std::map<int, Activity> activities = {}) const {
    return check_flights({.folder = folder_.path(),
                          .files = comm::read_flights(folder_.path()),
                          .activity =
                              [activities](const comm::FlightHeader& header) {
                                const auto found = activities.find(header.rank);
                                return found == activities.end() ? Activity::asleep : found->second;
                              },
                          .now_ns = 100 * kSecond});
  }
  Finding cause(const std::map<int, Activity>& activities = {}) const {
    return findings(activities).front();
  }
  std::string path(int rank) const { return comm::flight_path(folder_.path(), rank); }

  const test::TemporaryFolder folder_;

 private:
  std::map<int, std::unique_ptr<FlightRecorder>> recorders_;
};

void expect_finding(const Finding& finding, Verdict verdict, const std::string& part,
                    const std::string& fix = "") {
  EXPECT_EQ(finding.verdict, verdict) << finding.found;
  EXPECT_NE(finding.found.find(part), std::string::npos) << finding.found;
  EXPECT_NE(finding.fix.find(fix), std::string::npos) << finding.fix;
  EXPECT_EQ(finding.found.find('\n'), std::string::npos) << finding.found;
}

TEST_F(FlightChecks, the_first_operation_that_differs_is_named_with_both_sides) {
  for (const int rank : {0, 1, 3}) {
    record(rank, 9, true);
  }
  record(2, 9, true, "extra");
  expect_finding(cause(), Verdict::fail,
                 "ranks disagree about operation #9 of group 'world': ranks 0, 1 and 3: barrier "
                 "'step 9'; rank 2: barrier 'extra'; the last that they did alike was 'step 8' "
                 "(barrier, #8)",
                 "look for a branch that depends on the rank behind 'step 8' (barrier, #8)");
}

TEST_F(FlightChecks, a_dead_rank_is_named_with_what_it_did_last) {
  record_all(9, true);
  record(2, 8, false);
  expect_finding(cause({{2, Activity::gone}}), Verdict::fail,
                 "rank 2 died: gone; it left 'step 8' (barrier, #8) 92 s ago", "its output");
}

TEST_F(FlightChecks, a_rank_that_left_while_others_went_on_is_named) {
  record_all(9, true);
  record(1, 8, false);
  close(1);
  expect_finding(cause(), Verdict::fail, "rank 1 destroyed its group while others went on: through",
                 "an exception or an early return");
}

TEST_F(FlightChecks, a_stopped_rank_is_named_with_the_way_to_go_on) {
  record_all(9, true);
  record(3, 8, false);
  expect_finding(cause({{3, Activity::stopped}}), Verdict::fail,
                 "rank 3 is held: stopped (SIGSTOP)", "kill -CONT " + std::to_string(::getpid()));
}

TEST_F(FlightChecks, a_rank_behind_fails_where_it_sleeps_and_is_a_warning_where_it_computes) {
  record_all(9, true);
  record(2, 8, false);
  record(3, 7, false);
  const std::string who =
      "ranks 2 and 3 have not entered 'step 9' (barrier, #9) of group 'world', "
      "in which rank 0 has been for 91 s; rank 2: ";
  expect_finding(cause(), Verdict::fail, who + "asleep for 92 s since leaving 'step 8'", "gdb -p");
  expect_finding(cause({{2, Activity::running}}), Verdict::warn, who + "computing for 92 s");
}

TEST_F(FlightChecks, a_rank_that_waits_in_another_group_is_told_so) {
  record_all(9, true);
  record(2, 8, false);
  comm::FlightRecord other = test::flight_record(9, "checkpoint");
  other.group = 78;
  comm::set_text(other.group_name, "world/0");
  recorder(2).enter(other);
  recorder(2).wait_for(9, 40 * kSecond);
  expect_finding(cause(), Verdict::fail,
                 "rank 2: waiting for 'checkpoint' (barrier, #9) of group 'world/0' for 60 s");
}

TEST_F(FlightChecks, ranks_in_step_are_well_while_they_run_and_when_they_ended) {
  record_all(9, true);
  expect_finding(cause(), Verdict::ok, "all 4 ranks agree, so far over 9 operations");
  record_all(9, false);
  close_all();
  expect_finding(cause(), Verdict::ok, "all 4 ranks agree, and ended after 9 operations");
  EXPECT_EQ(findings().size(), 5u);
}

TEST_F(FlightChecks, a_failure_that_ranks_were_told_stands_in_their_lines) {
  record_all(9, true);
  recorder(1).fail("group 'world': something\n  rank 0: waiting");
  expect_finding(cause(), Verdict::fail, "rank 1 failed: group 'world': something");
  EXPECT_TRUE(findings()[2].found.ends_with("; it was told: group 'world': something"));
}

TEST_F(FlightChecks, missing_cut_foreign_and_older_files_get_a_line_each) {
  record_all(3, false);
  close_all();
  fs::remove(path(0));
  fs::resize_file(path(1), 5000);
  folder_.write("rank-3.flight", "hello");
  { const FlightRecorder old(folder_.path(), {5, 9, 10}); }
  fs::copy_file(path(2), folder_.file("rank-2b.flight"));
  // The older one, by its own word.
  test::overwrite(path(9), offsetof(comm::FlightHeader, opened_unix_ns), std::string(8, '\0'));
  std::vector<std::string> lines;
  for (const Finding& finding : findings()) {
    lines.push_back(finding.name + ": " + finding.found);
  }
  const auto has = [&](const std::string& part) {
    return std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  EXPECT_EQ(has("cause: the ranks that left a file agree; what ranks 0 and 3 did is not known"), 1);
  EXPECT_EQ(has("rank 0: left no file"), 1);
  EXPECT_EQ(has("rank 3: left no file"), 1);
  EXPECT_EQ(has("file: rank-1.flight is cut short: holds 5000 of"), 1);
  EXPECT_EQ(has("file: rank-2b.flight says that it is rank 2, as rank-2.flight does"), 1);
  EXPECT_EQ(has("file: rank-3.flight is no flight recorder's file"), 1);
  EXPECT_EQ(has("file: rank-9.flight is of another job, begun 1970-01-01 00:00:00 UTC"), 1);
  EXPECT_EQ(lines.size(), 9u);
}

TEST_F(FlightChecks, a_folder_without_files_says_what_to_name) {
  expect_finding(cause(), Verdict::fail, "holds no file rank-*.flight", "LOCKSTEP_FLIGHT");
  folder_.write("rank-0.flight", "");
  expect_finding(cause(), Verdict::fail, "holds no readable file");
}

TEST(FlightsOf, looks_at_the_processes_of_this_machine) {
  const test::TemporaryFolder folder;
  const FlightRecorder alive(folder.path(), {77, 0, 2});
  { const FlightRecorder other(folder.path(), {77, 1, 2}); }
  test::overwrite(comm::flight_path(folder.path(), 1),
                  offsetof(comm::FlightHeader, process_started_at), std::string(8, '\0'));
  const Flights flights = flights_of(folder.path());
  ASSERT_EQ(flights.files.size(), 2u);
  comm::FlightHeader header = flights.files[0].log->header;
  EXPECT_EQ(flights.activity(header), Activity::running);
  EXPECT_EQ(flights.activity(flights.files[1].log->header),
            Activity::gone);  // its number's next one
  comm::set_text(header.host, "elsewhere");
  EXPECT_EQ(flights.activity(header), std::nullopt);
}

}  // namespace
}  // namespace lockstep::cli
