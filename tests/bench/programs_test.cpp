// The bench programs as users meet them, behind `lockstep bench`.
#include "launch/started_program.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

std::vector<std::string> bench(std::vector<std::string> words) {
  words.insert(words.begin(), {LOCKSTEP_PROGRAM, "bench"});
  return words;
}

TEST(BenchPrograms, collectives_answer_in_json_with_the_documented_fields) {
  StartedProgram program(
      bench({"collectives", "--ranks", "3", "--sizes", "4KB,100KB", "--plain", "--json"}));
  ASSERT_EQ(program.wait(std::chrono::seconds(100)), 0) << program.error();
  const auto answers = nlohmann::json::parse(program.output());
  ASSERT_EQ(answers.size(), 12u);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.size(), 12u);
    EXPECT_EQ(answer.at("algorithm"), "direct");
    EXPECT_EQ(answer.at("dtype"), "f32");
    EXPECT_EQ(answer.at("ranks"), 3);
    EXPECT_EQ(answer.at("hosts"), 1);
    EXPECT_TRUE(answer.at("peer").is_null());
    EXPECT_GE(answer.at("ms").get<double>(), answer.at("min_ms").get<double>());
    EXPECT_GT(answer.at("gb_per_s").get<double>(), 0);
    EXPECT_GT(answer.at("floor_share").get<double>(), 0);
  }
  EXPECT_EQ(answers[0].at("op"), "all_reduce");
  EXPECT_EQ(answers[0].at("bytes"), 4000);
  EXPECT_EQ(answers[0].at("symmetric"), true);
  EXPECT_EQ(answers[1].at("symmetric"), false);
  EXPECT_NE(program.error().find("3 ranks, f32, results verified"), std::string::npos)
      << program.error();
  EXPECT_TRUE(program.nothing_left());
}

TEST(BenchPrograms, collectives_print_machine_date_and_a_table) {
  StartedProgram program(bench({"collectives", "--sizes", "4KB", "--ops", "all_gather"}));
  ASSERT_EQ(program.wait(std::chrono::seconds(60)), 0) << program.error();
  const auto lines = lines_of(program.output());
  ASSERT_EQ(lines.size(), 4u) << program.output();
  EXPECT_NE(lines[0].find("UTC"), std::string::npos);
  EXPECT_NE(lines[0].find("cores"), std::string::npos);
  EXPECT_TRUE(lines[2].starts_with("collective")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("all_gather")) << lines[3];
}

TEST(BenchPrograms, tokenize_compares_with_tiktoken_and_prints_the_ratio) {
  StartedProgram program(
      bench({"tokenize", "--bytes", "300KB", "--rounds", "1", "--threads", "2"}));
  ASSERT_EQ(program.wait(std::chrono::seconds(100)), 0) << program.error();
  const auto lines = lines_of(program.output());
  ASSERT_EQ(lines.size(), 5u) << program.output();
  EXPECT_NE(lines[1].find("tokens, all equal; 2 threads"), std::string::npos) << lines[1];
  EXPECT_TRUE(lines[4].starts_with("ratio ")) << lines[4];
}

TEST(BenchPrograms, bad_command_lines_end_with_2_and_one_line) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"collectives", "--ranks", "1"},
                                             {"collectives", "--peers"},
                                             {"tokenize", "--rounds", "0"},
                                             {"tokenize", "--python", "/nowhere"},
                                             {"train", "--stages", "hybrid"},
                                             {"train", "--sweep", "prefetch"},
                                             {"acceptance", "--area", "plan"},
                                             {"acceptance", "--python", "/nowhere/python"}}) {
    StartedProgram program(bench(words));
    EXPECT_EQ(program.wait(), 2) << words[0] << " " << words[1];
    EXPECT_EQ(lines_of(program.error()).size(), 1u) << program.error();
    EXPECT_TRUE(program.error().starts_with("lockstep bench " + words[0] + ": " + words[1]))
        << program.error();
    EXPECT_EQ(program.output(), "");
  }
}

TEST(BenchPrograms, help_says_what_is_asked) {
  for (const std::string name : {"collectives", "train", "acceptance"}) {
    StartedProgram program(bench({name, "--help"}));
    EXPECT_EQ(program.wait(), 0) << program.error();
    EXPECT_NE(program.output().find("lockstep bench " + name), std::string::npos)
        << program.output();
  }
}

}  // namespace
}  // namespace lockstep::test
