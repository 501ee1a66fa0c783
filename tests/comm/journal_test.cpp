#include "comm/journal.h"

#include "comm/flight_log.h"
#include "comm/worlds.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

FlightLog log_of(const std::string& folder, int rank) {
  const FlightFile file = read_flight(flight_path(folder, rank));
  EXPECT_TRUE(file.log) << file.problem;
  return file.log.value_or(FlightLog{});
}

TEST(Journal, a_groups_operations_and_its_subgroups_are_recorded_in_order) {
  const test::TemporaryFolder folder;
  auto groups = Group::of_threads(2);
  test::on_ranks(groups, [&](Group& group) {
    group.barrier({.name = "not recorded"});
    EXPECT_EQ(group.flight_folder(), "");
    group.record_flight(folder.path());
    group.record_flight(folder.path());
    EXPECT_EQ(group.flight_folder(), folder.path());
    group.mark_step(3);
    std::vector<float> values(10);
    group.all_reduce(std::span(values), {.name = "sum"}).wait();
    Group second = group.duplicate();
    second.barrier({.name = "there"});
  });
  for (const int rank : {0, 1}) {
    const FlightLog log = log_of(folder.path(), rank);
    ASSERT_EQ(log.records.size(), 3u);
    EXPECT_EQ(log.header.rank, rank);
    const FlightRecord& sum = log.records[0];
    EXPECT_EQ(describe_briefly(sum), "'sum' (all_reduce f32[10], #2)");
    EXPECT_EQ(sum.number, 2u);
    EXPECT_EQ(sum.step, 3);
    EXPECT_EQ(sum.group, log.header.job);
    EXPECT_EQ(sum.steps_run, sum.steps);
    EXPECT_LE(sum.issued_ns, sum.started_ns);
    EXPECT_LE(sum.started_ns, sum.finished_ns);
    EXPECT_LE(sum.finished_ns, sum.left_ns);
    EXPECT_STREQ(log.records[1].kind.data(), "split");
    EXPECT_STREQ(log.records[2].name.data(), "there");
    EXPECT_STREQ(log.records[2].group_name.data(), "world/0");
    EXPECT_NE(log.records[2].group, log.header.job);
    EXPECT_EQ(log.records[2].sequence, 1u);
  }
  EXPECT_TRUE(same_call(log_of(folder.path(), 0).records[2], log_of(folder.path(), 1).records[2]));
}

TEST(Journal, a_failure_is_kept_and_the_end_of_the_handles_noted) {
  const test::TemporaryFolder folder;
  {
    auto groups = Group::of_threads(2);
    test::run_ranks(groups, [&](Group& group) {
      group.record_flight(folder.path());
      group.barrier({.name = group.rank() == 0 ? "a" : "b"});
    });
    for (const int rank : {0, 1}) {
      EXPECT_EQ(log_of(folder.path(), rank).header.state, FlightHeader::State::recording);
    }
  }
  for (const int rank : {0, 1}) {
    const FlightLog log = log_of(folder.path(), rank);
    EXPECT_NE(log.failure().find("ranks disagree about operation #1"), std::string::npos);
    EXPECT_EQ(log.header.state, FlightHeader::State::closed);
    EXPECT_EQ(log.where().entered.left_ns, 0);
  }
}

TEST(Journal, a_rank_records_to_one_folder) {
  const test::TemporaryFolder folder;
  Group group = Group::alone();
  group.record_flight(folder.file("one"));
  EXPECT_NE(test::error_of<UsageError>([&] {
              group.record_flight(folder.file("two"));
            }).find("name one folder"),
            std::string::npos);
  EXPECT_FALSE(test::error_of<UsageError>([&] { group.record_flight(""); }).empty());
}

}  // namespace
}  // namespace lockstep::comm
