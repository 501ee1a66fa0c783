// `lockstep doctor` as a user runs it.
#include "comm/flights.h"
#include "launch/started_program.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::StartedProgram;

constexpr std::chrono::seconds kPatience{60};

std::map<std::string, json> by_name(const json& report) {
  std::map<std::string, json> findings;
  for (const json& finding : report["findings"]) {
    findings[finding["name"]] = finding;
  }
  return findings;
}

#ifdef LOCKSTEP_WITH_TRAIN
TEST(Doctor, FindsEverythingOfThisBuildAndLeavesNothing) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder.file("tmp"));
  StartedProgram doctor({LOCKSTEP_PROGRAM, "doctor", "--json"},
                        {"LOCKSTEP_CACHE=" + folder.file("cache"), "TMPDIR=" + folder.file("tmp")});
  EXPECT_EQ(doctor.wait(kPatience), 0) << doctor.output() << doctor.error();
  const auto findings = by_name(json::parse(doctor.output()));
  for (const char* name :
       {"versions", "processor", "cores", "topology", "instructions", "memory", "shared memory",
        "limits", "huge pages", "LibTorch", "MPI", "text", "cache", "collectives", "training"}) {
    ASSERT_TRUE(findings.contains(name)) << name;
    EXPECT_NE(findings.at(name)["verdict"], "fail") << findings.at(name);
  }
  EXPECT_NE(findings.at("LibTorch")["found"].get<std::string>().find("libtorch"),
            std::string::npos);
  EXPECT_NE(findings.at("collectives")["found"].get<std::string>().find("is right"),
            std::string::npos);
  EXPECT_NE(findings.at("training")["found"].get<std::string>().find("same weights on both"),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder.file("tmp")));
  EXPECT_TRUE(doctor.nothing_left());
}
#endif

TEST(Doctor, OfAFlightSaysWhoDivergedAndEndsWith1) {
  const test::TemporaryFolder folder;
  for (const int rank : {0, 1}) {
    comm::FlightRecorder recorder(folder.path(), {77, rank, 2});
    test::fly(recorder, 1, "forward");
    test::fly(recorder, 2, rank == 0 ? "extra" : "bucket 0", /*inside=*/true);
  }
  StartedProgram doctor({LOCKSTEP_PROGRAM, "doctor", "--flight", folder.path()});
  EXPECT_EQ(doctor.wait(kPatience), 1) << doctor.error();
  const std::string text = doctor.output();
  EXPECT_EQ(text.rfind("fail  cause           ranks disagree about operation #2", 0), 0u) << text;
  EXPECT_NE(text.find("rank 0: barrier 'extra'; rank 1: barrier 'bucket 0'"), std::string::npos)
      << text;
  StartedProgram nowhere({LOCKSTEP_PROGRAM, "doctor", "--flight", folder.file("none")});
  EXPECT_EQ(nowhere.wait(kPatience), 1);
  EXPECT_NE(nowhere.error().find("can't be listed"), std::string::npos) << nowhere.error();
}

// A copy of `lockstep` with nothing, or broken programs, beside it.
class DoctorAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::copy_file(LOCKSTEP_PROGRAM, folder_.file("lockstep"));
    fs::create_directories(folder_.file("cache"));
  }
  void place(const std::string& name, const std::string& script) {
    folder_.write(name, "#!/bin/sh\n" + script);
    fs::permissions(folder_.file(name), fs::perms::owner_all);
  }
  StartedProgram& start(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {folder_.file("lockstep"), "doctor"});
    program_.emplace(words, std::vector<std::string>{"LOCKSTEP_CACHE=" + folder_.file("cache")});
    return *program_;
  }
  const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
  std::optional<StartedProgram> program_;
};

TEST_F(DoctorAlone, WithoutLibtorchWarnsAndEndsWell) {
  StartedProgram& doctor = start();
  EXPECT_EQ(doctor.wait(kPatience), 0) << doctor.output() << doctor.error();
  const std::string text = doctor.output();
  EXPECT_NE(text.find("warn  LibTorch"), std::string::npos) << text;
  EXPECT_NE(text.find("warn  collectives"), std::string::npos) << text;
  EXPECT_NE(text.find("fix: "), std::string::npos) << text;
  EXPECT_EQ(text.find("training"), std::string::npos) << text;
  EXPECT_NE(text.find("0 failures, "), std::string::npos) << text;
}

TEST_F(DoctorAlone, WhatFailsEndsWith1) {
  place("lockstep-train", "echo no library >&2; exit 127\n");
  place("lockstep-bench-collectives", "echo sums differ >&2; exit 1\n");
  StartedProgram& doctor = start({"--json"});
  EXPECT_EQ(doctor.wait(kPatience), 1);
  const json report = json::parse(doctor.output());
  EXPECT_EQ(report["verdict"], "fail");
  const auto findings = by_name(report);
  EXPECT_EQ(findings.at("LibTorch")["found"], "lockstep-train does not start: no library");
  EXPECT_EQ(findings.at("collectives")["found"], "all_reduce of 2 ranks failed: sums differ");
  EXPECT_EQ(findings.at("training")["verdict"], "fail");
}

TEST_F(DoctorAlone, ACacheThatCannotBeWrittenFails) {
  fs::remove_all(folder().file("cache"));
  folder().write("cache", "a file");
  StartedProgram& doctor = start({"--json"});
  EXPECT_EQ(doctor.wait(kPatience), 1);
  EXPECT_EQ(by_name(json::parse(doctor.output())).at("cache")["fix"],
            "set LOCKSTEP_CACHE to a folder that can");
}

}  // namespace
}  // namespace lockstep::cli
