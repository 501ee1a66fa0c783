#include "cli/plan_page.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace lockstep::cli {
namespace {

using nlohmann::json;

json answer_of(const PageParameters& parameters) {
  const PageReply reply = plan_page("/api/plan", parameters);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.type, "application/json");
  return json::parse(reply.body);
}

std::string refusal_of(const PageParameters& parameters) {
  const PageReply reply = plan_page("/api/plan", parameters);
  EXPECT_EQ(reply.status, 400) << reply.body;
  return json::parse(reply.body).at("error");
}

TEST(PlanPage, the_files_of_the_page_are_there_with_their_types) {
  for (const auto& [path, type, part] : {std::tuple{"/", "text/html", "<title>"},
                                         {"/page.js", "text/javascript", "api/plan"},
                                         {"/page.css", "text/css", "prefers-color-scheme"}}) {
    const PageReply reply = plan_page(path, {});
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.type, std::string(type) + "; charset=utf-8");
    EXPECT_NE(reply.body.find(part), std::string::npos) << path;
  }
}

TEST(PlanPage, nothing_else_is_served) {
  for (const char* path : {"", "/index.html", "/..", "/../CMakeLists.txt", "/etc/passwd", "/api",
                           "/api/plan/", "//", "/page.js/"}) {
    EXPECT_EQ(plan_page(path, {}).status, 404) << path;
  }
}

TEST(PlanPage, a_question_is_answered_as_the_command_line_answers_it) {
  const json answer = answer_of({{"params", "8e9"}, {"ranks", "8"}, {"device-memory", "80GB"}});
  EXPECT_EQ(answer["smallest_stage"], "zero1");
  for (const auto& stage : answer["stages"]) {
    if (stage["stage"] == "zero1") {
      EXPECT_EQ(stage["bytes"]["total"], 44'000'000'000);
    }
  }
  EXPECT_TRUE(answer["curves"].empty());
  EXPECT_TRUE(answer["timeline"].empty());
}

TEST(PlanPage, curves_and_timeline_come_when_asked_for) {
  const json answer = answer_of(
      {{"model", "gpt2-124m"}, {"ranks", "8"}, {"curves", "true"}, {"timeline", "zero3"}});
  EXPECT_GE(answer["curves"].size(), 5u);
  EXPECT_FALSE(answer["timeline"].empty());
}

TEST(PlanPage, switches_take_no_value) {
  const json kept = answer_of({{"model", "gpt2-124m"}, {"ranks", "2"}});
  const json computed = answer_of({{"model", "gpt2-124m"}, {"ranks", "2"}, {"recompute", "true"}});
  EXPECT_LT(computed["activations"]["peak"], kept["activations"]["peak"]);
}

TEST(PlanPage, nonsense_gets_the_command_lines_one_line) {
  EXPECT_NE(refusal_of({{"params", "8e9"}, {"ranks", "0"}}).find("--ranks"), std::string::npos);
  EXPECT_NE(refusal_of({{"params", "1e40"}}).find("--params"), std::string::npos);
  EXPECT_NE(refusal_of({{"params", "-1"}}).find("--params"), std::string::npos);
  EXPECT_NE(refusal_of({}).find("--params"), std::string::npos);
  EXPECT_NE(refusal_of({{"params", "8e9"}, {"timeline", "zero9"}}).find("zero9"),
            std::string::npos);
  EXPECT_NE(refusal_of({{"params", "8e9"}, {"json", "true"}}).find("'json'"), std::string::npos);
  EXPECT_NE(refusal_of({{"params", "8e9"}, {"web", "true"}}).find("'web'"), std::string::npos);
}

TEST(PlanPage, no_file_is_read_because_an_address_names_it) {
  for (const char* option : {"model", "hardware"}) {
    for (const char* file : {"/etc/passwd", "../config.json", "", "gpt2-124m/"}) {
      EXPECT_NE(refusal_of({{option, file}}).find("names only"), std::string::npos) << file;
    }
  }
}

TEST(PlanPage, choices_list_models_machines_and_stages) {
  const json choices = json::parse(plan_page("/api/choices", {}).body);
  EXPECT_NE(std::ranges::find(choices["models"], "gpt2-124m"), choices["models"].end());
  EXPECT_NE(std::ranges::find(choices["stages"], "hybrid"), choices["stages"].end());
  EXPECT_FALSE(choices["hardware"][0]["description"].get<std::string>().empty());
}

TEST(PlanPage, the_address_says_what_the_words_say) {
  EXPECT_EQ(page_address({"--web"}), "/");
  EXPECT_EQ(page_address({"--web", "--ranks", "8", "--params=8e9", "--recompute"}),
            "/?params=8e9&ranks=8&recompute=true");
  EXPECT_EQ(page_address({"--web", "--params", "8e9", "--device-memory", "80 GB"}),
            "/?params=8e9&device-memory=80%20GB");
  EXPECT_THROW(page_address({"--web", "--model", "/tmp/config.json"}), UsageError);
}

}  // namespace
}  // namespace lockstep::cli
