#include "comm/flight_log.h"

#include "comm/flights.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>

namespace lockstep::comm {
namespace {

namespace fs = std::filesystem;
using test::fly;
using test::overwrite;

class FlightLogFile : public ::testing::Test {
 protected:
  void SetUp() override {
    FlightRecorder recorder(folder_.path(), {77, 0, 2});
    for (std::uint64_t n = 1; n <= 5; ++n) {
      fly(recorder, n, "n");
    }
  }
  std::string path() const { return flight_path(folder_.path(), 0); }
  std::string problem() const { return read_flight(path()).problem; }
  const test::TemporaryFolder folder_;
};

TEST_F(FlightLogFile, other_files_are_no_flight_records) {
  EXPECT_EQ(read_flight(folder_.file("none")).problem, "can't be read: No such file or directory");
  EXPECT_EQ(read_flight(folder_.path()).problem, "is no file");
  EXPECT_EQ(read_flight(folder_.write("a", "")).problem, "is empty");
  EXPECT_EQ(read_flight(folder_.write("b", "hello")).problem, "is no flight recorder's file");
  EXPECT_EQ(read_flight(folder_.write("c", std::string(400'000, 'x'))).problem,
            "is no flight recorder's file");
}

TEST_F(FlightLogFile, cut_anywhere_it_gives_what_is_left) {
  fs::resize_file(path(), 100);
  EXPECT_EQ(problem(), "is cut short: holds 100 of " + std::to_string(kFlightFileBytes) +
                           " bytes, not even its header");
  SetUp();
  fs::resize_file(path(), kFlightHeaderBytes + 2 * sizeof(FlightRecord) + 17);
  const FlightFile file = read_flight(path());
  ASSERT_TRUE(file.log) << file.problem;
  EXPECT_EQ(file.log->records.size(), 2u);
  EXPECT_NE(file.log->cut, "");
}

TEST_F(FlightLogFile, another_layout_and_a_senseless_header_are_told_apart) {
  overwrite(path(), offsetof(FlightHeader, version), "\x09");
  EXPECT_NE(problem().find("has the layout of another build (lockstep "), std::string::npos);
  SetUp();
  overwrite(path(), offsetof(FlightHeader, rank), "\x09");
  EXPECT_EQ(problem(), "is damaged: its header makes no sense");
  SetUp();
  overwrite(path(), offsetof(FlightHeader, last_number), std::string(8, '\xff'));
  EXPECT_EQ(problem(), "is damaged: its header makes no sense");
}

TEST_F(FlightLogFile, damaged_records_are_left_out_and_counted) {
  overwrite(path(), kFlightHeaderBytes + sizeof(FlightRecord), std::string(8, '\0'));
  overwrite(path(), kFlightHeaderBytes + 2 * sizeof(FlightRecord) + offsetof(FlightRecord, parts),
            "\x63");
  const FlightFile file = read_flight(path());
  ASSERT_TRUE(file.log) << file.problem;
  EXPECT_EQ(file.log->records.size(), 3u);
  EXPECT_EQ(file.log->torn, 2u);
}

// Each byte of the header and of a record, changed alone: read or refused, never a crash.
TEST_F(FlightLogFile, no_single_byte_breaks_the_reader) {
  const std::string bytes = test::contents_of(path());
  for (std::size_t at = 0; at < kFlightHeaderBytes + sizeof(FlightRecord);
       at += at < 400 || at >= kFlightHeaderBytes ? 1 : 97) {
    std::string damaged = bytes.substr(0, kFlightHeaderBytes + 6 * sizeof(FlightRecord));
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    const FlightFile file = read_flight(folder_.write("damaged", damaged));
    EXPECT_NE(file.log.has_value(), !file.problem.empty()) << at;
    if (file.log) {
      describe(file.log->where(), 0, 0);
    }
  }
}

TEST_F(FlightLogFile, a_folder_gives_its_flight_files_in_order) {
  { const FlightRecorder second(folder_.path(), {77, 1, 2}); }
  folder_.write("rank-9.flight.4711", "pending");
  folder_.write("notes.txt", "");
  const auto files = read_flights(folder_.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, path());
  EXPECT_EQ(files[1].log->header.rank, 1);
  EXPECT_NE(test::error_of<SystemError>([&] {
              read_flights(folder_.file("none"));
            }).find("can't be listed"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::comm
