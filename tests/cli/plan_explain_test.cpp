#include "cli/plan_explain.h"

#include "plan/queries.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using plan::answer;
using plan::query_of;

std::string part_of(const std::string& text, const std::string& stage) {
  const std::size_t at = text.find("\n" + stage + "\n");
  return at == std::string::npos ? "" : text.substr(at, text.find("\n\n", at) - at);
}

// Case L58: 2 + 14/8 bytes, with the breakdown shown.
TEST(PlanExplain, each_category_is_a_product_that_can_be_checked) {
  const auto query = query_of(1'000'000'000, 8);
  const std::string text = plan_explanation(query, answer(query));
  const std::string zero2 = part_of(text, "zero2");
  for (const char* const line :
       {"  parameters  2 x 1,000,000,000 = 2,000,000,000\n",
        "  gradients   2 x ceil(1,000,000,000 / 8) = 250,000,000\n",
        "  optimizer   12 x ceil(1,000,000,000 / 8) = 1,500,000,000\n",
        "  total       3,750,000,000 = 3.75 GB = 3.49 GiB, <= 80,000,000,000\n",
        "  sent        (P-1)/P (X + W): gradients 1,750,000,000 + parameters 1,750,000,000 = "
        "3,500,000,000\n",
        "  floor       3,500,000,000 bytes / 10 GB/s of one rank = 350 ms\n"}) {
    EXPECT_NE(zero2.find(line), std::string::npos) << line << "in" << zero2;
  }
  EXPECT_NE(part_of(text, "zero3").find("(P-1)/P (2 W + X)"), std::string::npos);
  EXPECT_EQ(part_of(text, "single").find("floor"), std::string::npos);
}

TEST(PlanExplain, names_the_letters_the_machine_and_its_source) {
  auto query = query_of(1'000'000, 16);
  query.frozen_ppm = 500'000;
  const std::string text = plan_explanation(query, answer(query));
  EXPECT_NE(text.find("N = 1,000,000 parameters, P = 16 ranks, k = 1"), std::string::npos);
  EXPECT_NE(text.find("G = 8 ranks of a shard group, R = 2 replicas"), std::string::npos);
  EXPECT_NE(text.find("round: made up"), std::string::npos);
  EXPECT_NE(text.find("frozen    2 x 500,000 = 1,000,000"), std::string::npos) << text;
  EXPECT_NE(text.find("between hosts = "), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli
