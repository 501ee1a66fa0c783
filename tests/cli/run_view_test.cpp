#include "cli/run_view.h"

#include "comm/flights.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <memory>

namespace lockstep::cli {
namespace {

class RunViewTest : public ::testing::Test {
 protected:
  RunViewTest() { std::filesystem::create_directory(folder_.file("flight")); }

  // A rank of this process: it lives.
  std::unique_ptr<comm::FlightRecorder> rank_here() const {
    auto recorder = std::make_unique<comm::FlightRecorder>(
        folder_.file("flight"), comm::FlightRecorder::Identity{77, 0, 1});
    test::fly(*recorder, 1, "bucket 0", /*inside=*/true);
    return recorder;
  }
  // What the file says of a process that is gone: started at another time than this one.
  void bury() const {
    test::overwrite(comm::flight_path(folder_.file("flight"), 0),
                    offsetof(comm::FlightHeader, process_started_at), std::string(8, '\1'));
  }
  RunState state() const { return look_at_run(folder_.path()).state; }
  MetricsPiece metrics(std::int64_t from, std::int64_t most = 1'000'000) const {
    return read_metrics(folder_.path(), from, most);
  }

  const test::TemporaryFolder folder_;
};

TEST_F(RunViewTest, a_run_is_running_while_a_rank_lives_whatever_report_lies_there) {
  const auto rank = rank_here();
  EXPECT_EQ(state(), RunState::running);
  folder_.write("report.json", "{}");  // of the run that this one goes on from
  EXPECT_EQ(state(), RunState::running);
}

TEST_F(RunViewTest, a_run_without_living_ranks_has_ended_or_was_stopped) {
  rank_here();
  bury();
  EXPECT_EQ(state(), RunState::stopped);
  folder_.write("report.json", "{}");
  EXPECT_EQ(state(), RunState::ended);
}

TEST_F(RunViewTest, ranks_are_told_as_by_doctor) {
  const auto rank = rank_here();
  const RunView view = look_at_run(folder_.path());
  ASSERT_EQ(view.ranks.size(), 2u);
  EXPECT_EQ(view.ranks[0].name, "cause");
  EXPECT_EQ(view.ranks[1].name, "rank 0");
  EXPECT_NE(view.ranks[1].found.find("'bucket 0'"), std::string::npos) << view.ranks[1].found;
}

TEST_F(RunViewTest, options_are_those_of_the_config) {
  EXPECT_FALSE(is_run(folder_.path()));
  folder_.write("config.toml", "model = \"gpt2-tiny\"\nsteps = 7\n");
  EXPECT_TRUE(is_run(folder_.path()));
  const RunView view = look_at_run(folder_.path());
  const std::vector<std::pair<std::string, std::string>> expected{{"model", "gpt2-tiny"},
                                                                  {"steps", "7"}};
  EXPECT_EQ(view.options, expected);
}

TEST_F(RunViewTest, whatever_a_folder_holds_is_looked_at) {
  folder_.write("config.toml", "\xff\xfe no option\n");
  folder_.write("flight/rank-0.flight", "hello");
  folder_.write("metrics.jsonl", "{\"step\":0}\nnot json\n[1]\n{\"step\":1}\n");
  EXPECT_TRUE(look_at_run(folder_.path()).options.empty());
  const MetricsPiece piece = metrics(0);
  ASSERT_EQ(piece.lines.size(), 2u);
  EXPECT_EQ(piece.lines[1].at("step"), 1);
  EXPECT_EQ(look_at_run(folder_.file("none")).state, RunState::stopped);
}

TEST_F(RunViewTest, metrics_are_read_on_by_whole_lines) {
  EXPECT_EQ(metrics(0).next, 0);
  folder_.write("metrics.jsonl", "{\"step\":0}\n{\"st");
  const MetricsPiece first = metrics(0);
  EXPECT_EQ(first.lines.size(), 1u);
  EXPECT_EQ(first.next, 11);
  folder_.write("metrics.jsonl", "{\"step\":0}\n{\"step\":1}\n");
  const MetricsPiece second = metrics(first.next);
  EXPECT_EQ(second.from, 11);
  ASSERT_EQ(second.lines.size(), 1u);
  EXPECT_EQ(second.lines[0].at("step"), 1);
  EXPECT_TRUE(metrics(second.next).lines.empty());
}

TEST_F(RunViewTest, long_metrics_come_in_pieces) {
  folder_.write("metrics.jsonl", "{\"step\":0}\n{\"step\":1}\n{\"step\":2}\n");
  const MetricsPiece piece = metrics(0, 25);
  EXPECT_EQ(piece.lines.size(), 2u);
  EXPECT_TRUE(piece.more);
  const MetricsPiece rest = metrics(piece.next, 25);
  EXPECT_EQ(rest.lines.size(), 1u);
  EXPECT_FALSE(rest.more);
}

TEST_F(RunViewTest, a_file_that_was_written_anew_is_read_anew) {
  folder_.write("metrics.jsonl", "{\"step\":10}\n{\"step\":11}\n");
  const std::int64_t next = metrics(0).next;
  folder_.write("metrics.jsonl", "{\"step\":1}\n");
  EXPECT_EQ(metrics(next).from, 0);
  folder_.write("metrics.jsonl", "{\"step\":1, \"train/loss\": 1.5, \"train/lr\": 1}\n");
  const MetricsPiece piece = metrics(next);
  EXPECT_EQ(piece.from, 0);
  EXPECT_EQ(piece.lines.size(), 1u);
}

}  // namespace
}  // namespace lockstep::cli
