#include "bench/train/report.h"
#include "bench/train/verify.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

Launch launch(const std::string& name, std::int64_t round, double ms) {
  Launch result;
  result.mode = mode_named(name);
  result.round = round;
  result.step_ms = {ms, ms - 1, ms + 1};
  result.forward_ms = ms / 4;
  result.backward_ms = ms / 2;
  result.update_ms = ms / 8;
  result.tokens_per_s = 256 / ms * 1e3;
  result.losses = {11, 10};
  result.mean_losses = {11.5, 10.5};
  result.resident_bytes = {1'000'000'000, 2'000'000'000 + round * 1'000'000};
  result.parameters = 7;
  if (!is_peer(result.mode)) {
    result.exposed_comm_ms = ms / 100;
    result.weights_sha256 = "hash";
  }
  return result;
}

Session session() {
  Session session;
  for (std::int64_t round = 0; round < 3; ++round) {
    const double slow = round == 2 ? 2 : 1;
    session.launches.push_back(launch("apart", round, 100 * slow));
    session.launches.push_back(launch("zero3", round, (104 + static_cast<double>(round)) * slow));
    session.launches.push_back(launch("pytorch-fsdp2", round, 400 * slow));
  }
  session.comparisons = compare(session.launches);
  return session;
}

TEST(TrainReport, a_mode_counts_as_the_median_of_its_rounds) {
  const auto summaries = summaries_of(session());
  ASSERT_EQ(summaries.size(), 3u);
  EXPECT_EQ(summaries[1].mode, "zero3");
  EXPECT_EQ(summaries[1].step_ms.median, 105);
  EXPECT_EQ(summaries[1].step_ms.least, 104);
  EXPECT_EQ(summaries[1].step_ms.most, 212);
  EXPECT_EQ(summaries[1].backward_ms, 52.5);
  EXPECT_EQ(summaries[1].exposed_comm_ms, 1.05);
  EXPECT_EQ(summaries[1].resident_bytes[1], 2'002'000'000);
  ASSERT_TRUE(summaries[1].ratio_to_apart);
  EXPECT_DOUBLE_EQ(summaries[1].ratio_to_apart->most, 1.06);
  EXPECT_FALSE(summaries[0].ratio_to_apart);
  EXPECT_FALSE(summaries[2].exposed_comm_ms);
}

TEST(TrainReport, the_table_has_a_row_per_mode_and_lines_for_peers) {
  const std::string text = text_of(session(), {{mode_named("deepspeed-zero1"), "no deepspeed"}});
  EXPECT_NE(text.find("\nzero3            105.0  104.0-212.0      2438     26.2      52.5    13.1"
                      "      1.1    1000 2002    1.050  1.040-1.060\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("zero3 takes 0.263 x pytorch-fsdp2 (0.260-0.265)\n"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\ndeepspeed-zero1 is left out: no deepspeed\n")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 6);
}

TEST(TrainReport, json_holds_modes_launches_and_what_was_left_out) {
  TrainQuestion question;
  const auto json =
      json_of(question, session(), {{mode_named("deepspeed-zero1"), "python has no deepspeed"}});
  ASSERT_EQ(json.at("modes").size(), 3u);
  EXPECT_EQ(json.at("modes")[1].at("mode"), "zero3");
  EXPECT_EQ(json.at("modes")[1].at("step_ms").at("median"), 105);
  EXPECT_TRUE(json.at("modes")[0].at("ratio_to_apart").is_null());
  EXPECT_TRUE(json.at("modes")[2].at("exposed_comm_ms").is_null());
  ASSERT_EQ(json.at("launches").size(), 9u);
  EXPECT_EQ(json.at("launches")[4].at("round"), 1);
  EXPECT_TRUE(json.at("launches")[4].at("bucket_mb").is_null());
  EXPECT_EQ(json.at("comparisons").size(), 3u);
  EXPECT_EQ(json.at("left_out")[0].at("mode"), "deepspeed-zero1");
  EXPECT_EQ(json.at("left_out")[0].at("reason"), "python has no deepspeed");
}

TEST(TrainReport, the_plot_has_a_bar_per_mode_and_a_line_for_apart) {
  const std::string svg = plot_of({}, session());
  for (const char* part :
       {"apart: 100 (100 to 200)", "zero3: 105 (104 to 212)", "pytorch-fsdp2: 400 (400 to 800)",
        "class=\"mark\"", "gpt2-124m f32 1x128 per rank, 2 ranks x 1 threads"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part << " is not in " << svg;
  }
}

}  // namespace
}  // namespace lockstep::bench
