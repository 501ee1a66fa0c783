#include "comm/flight_recorder.h"

#include "comm/flight_log.h"
#include "comm/flights.h"
#include "comm/processes.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lockstep::comm {
namespace {

using test::fly;

FlightLog read(const std::string& folder, int rank) {
  const FlightFile file = read_flight(flight_path(folder, rank));
  EXPECT_TRUE(file.log) << file.problem;
  return file.log.value_or(FlightLog{});
}

TEST(FlightRecorder, keeps_what_the_rank_did_and_who_it_is) {
  const test::TemporaryFolder folder;
  {
    FlightRecorder recorder(folder.file("new/flight"), {77, 2, 4});
    fly(recorder, 1, "first");
    fly(recorder, 2, "second", /*inside=*/true);
    recorder.wait_for(2, 99);
    recorder.beat(123);
    const FlightLog log = read(folder.file("new/flight"), 2);
    EXPECT_EQ(log.header.job, 77u);
    EXPECT_EQ(log.header.rank, 2);
    EXPECT_EQ(log.header.size, 4);
    EXPECT_EQ(log.header.process, ::getpid());
    EXPECT_EQ(log.header.boot.data(), boot_id());
    EXPECT_EQ(log.header.state, FlightHeader::State::recording);
    ASSERT_EQ(log.records.size(), 2u);
    EXPECT_STREQ(log.records[0].name.data(), "first");
    EXPECT_EQ(log.records[0].left_ns, 1'500'000'000);
    EXPECT_EQ(log.records[1].left_ns, 0);
    const Whereabouts where = log.where();
    EXPECT_EQ(where.entered.number, 2u);
    EXPECT_EQ(where.left.number, 1u);
    EXPECT_EQ(where.awaited.number, 2u);
    EXPECT_EQ(where.waiting_since_ns, 99);
    EXPECT_EQ(where.heartbeat_ns, 123);
    recorder.stop_waiting();
    recorder.fail("because");
    recorder.fail("not because");
  }
  const FlightLog log = read(folder.file("new/flight"), 2);
  EXPECT_EQ(log.header.state, FlightHeader::State::closed);
  EXPECT_EQ(log.failure(), "because");
  EXPECT_EQ(log.where().waiting_since_ns, 0);
}

TEST(FlightRecorder, keeps_the_last_thousand) {
  const test::TemporaryFolder folder;
  FlightRecorder recorder(folder.path(), {77, 0, 1});
  for (std::uint64_t n = 1; n <= 2345; ++n) {
    fly(recorder, n, "n");
  }
  recorder.update(test::flight_record(7, "long gone"));
  const FlightLog log = read(folder.path(), 0);
  ASSERT_EQ(log.records.size(), kFlightRecords);
  EXPECT_EQ(log.records.front().number, 1346u);
  EXPECT_EQ(log.records.back().number, 2345u);
  EXPECT_EQ(log.torn, 0u);
  for (const FlightRecord& record : log.records) {
    EXPECT_GT(record.left_ns, 0);
  }
}

// At whatever moment the process is killed, what it had entered is in the file, record by record.
TEST(FlightRecorder, survives_kill_9_at_any_moment) {
  for (int moment = 0; moment < 20; ++moment) {
    const test::TemporaryFolder folder;
    test::Processes ranks;
    const pid_t process = ranks.start([&] {
      FlightRecorder recorder(folder.path(), {77, 1, 2});
      for (std::uint64_t n = 1;; ++n) {
        fly(recorder, n, "operation " + std::to_string(n));
      }
    });
    while (!std::filesystem::exists(flight_path(folder.path(), 1))) {
      ::usleep(1000);
    }
    ::usleep(static_cast<useconds_t>(500 + 733 * moment));
    ::kill(process, SIGKILL);
    ranks.end(0);
    const FlightLog log = read(folder.path(), 1);
    EXPECT_EQ(log.header.state, FlightHeader::State::recording);
    // Only the one that was being written may be missing.
    EXPECT_LE(log.torn, 1u);
    std::uint64_t before = 0;
    for (const FlightRecord& record : log.records) {
      EXPECT_STREQ(record.name.data(), ("operation " + std::to_string(record.number)).c_str());
      EXPECT_GT(record.number, before);
      before = record.number;
    }
  }
}

TEST(FlightRecorder, a_later_rank_replaces_the_file_and_leaves_the_mapped_one_alone) {
  const test::TemporaryFolder folder;
  FlightRecorder earlier(folder.path(), {1, 0, 1});
  FlightRecorder later(folder.path(), {2, 0, 1});
  fly(earlier, 1, "into the old file");
  EXPECT_EQ(read(folder.path(), 0).header.job, 2u);
  EXPECT_TRUE(read(folder.path(), 0).records.empty());
  EXPECT_EQ(folder.entries(), 1);
}

TEST(FlightRecorder, what_can_not_be_written_is_named) {
  const test::TemporaryFolder folder;
  folder.write("file", "");
  const std::string text = test::error_of<SystemError>([&] {
    const FlightRecorder recorder(folder.file("file"), {1, 0, 1});
  });
  EXPECT_NE(text.find("file: can't be made: "), std::string::npos) << text;
}

// A disk that is full, as far as a process can see it.
TEST(FlightRecorder, a_file_that_does_not_fit_is_refused_and_not_left) {
  const test::TemporaryFolder folder;
  test::Processes ranks;
  ranks.start([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const FlightRecorder recorder(folder.path(), {1, 0, 1});
  });
  const std::string text = ranks.end(0).text;
  EXPECT_EQ(text.rfind("SystemError: flight recorder: ", 0), 0u) << text;
  EXPECT_NE(text.find("can't take "), std::string::npos) << text;
  EXPECT_EQ(folder.entries(), 0);
}

TEST(FlightRecorder, a_forked_child_does_not_close_it) {
  const test::TemporaryFolder folder;
  test::Processes ranks;
  auto recorder =
      std::make_unique<FlightRecorder>(folder.path(), FlightRecorder::Identity{1, 0, 1});
  ranks.start([&] { recorder.reset(); });
  EXPECT_TRUE(ranks.end(0).clean());
  EXPECT_EQ(read(folder.path(), 0).header.state, FlightHeader::State::recording);
}

}  // namespace
}  // namespace lockstep::comm
