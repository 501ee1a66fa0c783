#include "cli/dash_page.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace lockstep::cli {
namespace {

using nlohmann::json;

class DashPage : public ::testing::Test {
 protected:
  DashPage() {
    make_run("b");
    make_run("a");
    std::filesystem::create_directory(folder_.file("no-run"));
  }
  void make_run(const std::string& name) const {
    std::filesystem::create_directory(folder_.file(name));
    folder_.write(name + "/config.toml", "model = \"" + name + "\"\n");
    folder_.write(name + "/metrics.jsonl", "{\"step\":0,\"train/loss\":2.5}\n");
  }
  PageReply get(const std::string& path, const PageParameters& parameters = {}) const {
    return dash_page({folder_.path()}, path, parameters);
  }

  const test::TemporaryFolder folder_;
};

TEST_F(DashPage, the_page_and_its_files_are_served) {
  for (const char* path : {"/", "/page.js", "/page.css"}) {
    const PageReply reply = get(path);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_GT(reply.body.size(), 500u) << path;
  }
}

TEST_F(DashPage, runs_inside_a_folder_are_listed_by_name_and_found_later) {
  EXPECT_EQ(runs_in({folder_.path()}),
            (std::vector<std::string>{folder_.file("a"), folder_.file("b")}));
  EXPECT_EQ(runs_in({folder_.file("b"), folder_.file("none")}),
            std::vector<std::string>{folder_.file("b")});
  make_run("c");
  const json runs = json::parse(get("/api/runs").body).at("runs");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[2].at("run"), folder_.file("c"));
  EXPECT_EQ(runs[0].at("state"), "stopped");
  EXPECT_EQ(runs[0].at("options").at("model"), "a");
}

TEST_F(DashPage, metrics_come_by_run_and_byte) {
  const json all = json::parse(get("/api/metrics", {{"run", folder_.file("a")}}).body);
  EXPECT_EQ(all.at("lines").at(0).at("train/loss"), 2.5);
  EXPECT_FALSE(all.at("more").get<bool>());
  const std::string next = std::to_string(all.at("next").get<std::int64_t>());
  const json rest =
      json::parse(get("/api/metrics", {{"run", folder_.file("a")}, {"from", next}}).body);
  EXPECT_TRUE(rest.at("lines").empty());
}

TEST_F(DashPage, nothing_outside_of_the_runs_is_read) {
  for (const std::string& run : {std::string("/etc"), folder_.file("no-run"),
                                 folder_.file("a/../b"), folder_.path(), std::string()}) {
    EXPECT_EQ(get("/api/metrics", {{"run", run}}).status, 404) << run;
  }
  for (const char* path : {"/api/plan", "/../etc/passwd", "/a/config.toml", ""}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
}

TEST_F(DashPage, a_place_that_is_none_is_an_error) {
  for (const char* from : {"-1", "x", "1x", "99999999999999999999"}) {
    const PageReply reply = get("/api/metrics", {{"run", folder_.file("a")}, {"from", from}});
    EXPECT_EQ(reply.status, 400) << from;
    EXPECT_NE(reply.body.find("from"), std::string::npos) << reply.body;
  }
}

}  // namespace
}  // namespace lockstep::cli
