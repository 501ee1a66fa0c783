#include "cli/plan_text.h"

#include "plan/queries.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using plan::answer;
using plan::PlanQuery;
using plan::query_of;

std::string line_of(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find("\n" + begin);
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(PlanText, names_its_units_and_shows_the_figures) {
  const PlanQuery query = query_of(8'000'000'000, 8);
  const std::string text = plan_table(query, answer(query));
  EXPECT_TRUE(text.starts_with("8,000,000,000 parameters, bf16, on 8 ranks of 1 host\n")) << text;
  EXPECT_NE(text.find("GB (1e9), their sum in GiB (2^30) too"), std::string::npos);
  const std::string zero1 = line_of(text, "zero1 ");
  EXPECT_NE(zero1.find("16.00"), std::string::npos) << zero1;
  EXPECT_NE(zero1.find("44.00"), std::string::npos);
  EXPECT_NE(zero1.find("40.98"), std::string::npos);
  EXPECT_NE(zero1.find(" yes"), std::string::npos);
  EXPECT_NE(line_of(text, "ddp ").find(" no "), std::string::npos);
  EXPECT_EQ(line_of(text, "Smallest stage"), "Smallest stage that fits: zero1");
  EXPECT_NE(line_of(text, "Smallest number").find("ddp none, zero1 "), std::string::npos);
  EXPECT_NE(text.find("\n- use zero1: "), std::string::npos);
}

TEST(PlanText, bars_are_as_long_as_the_bytes_and_mark_the_memory) {
  const PlanQuery query = query_of(8'000'000'000, 8);
  const std::string text = plan_table(query, answer(query));
  // 128 GB fill 40 columns: 16, 16 and 96 GB are 5, 5 and 30; 80 GB end behind 25.
  EXPECT_NE(text.find("\nddp     PPPPPGGGGGOOOOOOOOOOOOOOO|OOOOOOOOOOOOOOO\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nzero3   POOOO                    |\n"), std::string::npos) << text;
}

TEST(PlanText, says_what_is_not_known_of_a_number) {
  PlanQuery query = query_of(8'000'000, 8);
  EXPECT_NE(plan_table(query, answer(query)).find("Only the number of parameters is known"),
            std::string::npos);
  query.blocks = 4;
  EXPECT_EQ(plan_table(query, answer(query)).find("Only the number"), std::string::npos);
  query.algorithm = plan::Algorithm::coordinator;
  EXPECT_NE(plan_table(query, answer(query)).find("can't add up"), std::string::npos);
}

TEST(PlanText, no_line_of_the_table_is_wider_than_a_wide_terminal) {
  const PlanQuery query = query_of(900'000'000'000, 64);
  const std::string text = plan_table(query, answer(query));
  for (const char* const stage : {"single ", "ddp ", "zero3 ", "hybrid "}) {
    EXPECT_LE(line_of(text, stage).size(), 120u);
  }
}

}  // namespace
}  // namespace lockstep::cli
