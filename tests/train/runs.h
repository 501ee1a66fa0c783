// Runs `lockstep train` as a user does, for tests of what its reports promise.
#pragma once

#include "launch/started_program.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::train {

using Words = std::vector<std::string>;

inline constexpr std::chrono::seconds kPatience{120};

inline Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Runs of the program with what every test has in common.
class Runs {
 public:
  // `lockstep train` with `words`; its run folder is last_run().
  Words command(const Words& words) {
    last_run_ = folder_.file("run-" + std::to_string(count_++));
    return joined(
        {LOCKSTEP_PROGRAM, "train", "--model", "gpt2-tiny", "--data", "text", "--seed", "1",
         "--seq", "64", "--micro-batch", "1", "--eval-batches", "2", "--run", last_run_},
        words);
  }
  std::vector<std::string> environment() const {
    return {"LOCKSTEP_CACHE=" + folder_.file("cache")};
  }
  // Runs `lockstep train`, expects success and returns its report.
  nlohmann::json train(const Words& words) {
    test::StartedProgram program(command(words), environment());
    EXPECT_EQ(program.wait(kPatience), 0) << program.output() << program.error();
    last_output_ = program.output();
    return nlohmann::json::parse(test::contents_of(last_run_ + "/report.json"));
  }
  const std::string& last_run() const { return last_run_; }
  const std::string& last_output() const { return last_output_; }
  std::string file(std::string_view name) const { return folder_.file(name); }

 private:
  test::TemporaryFolder folder_;
  int count_ = 0;
  std::string last_run_;
  std::string last_output_;
};

}  // namespace lockstep::train
