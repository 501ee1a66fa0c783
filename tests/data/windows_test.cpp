#include "data/windows.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lockstep::data {
namespace {

std::vector<std::uint8_t> tokens(std::size_t count) {
  std::vector<std::uint8_t> result(count);
  std::iota(result.begin(), result.end(), std::uint8_t{0});
  return result;
}

TEST(Split, LastTenthIsForValidation) {
  for (const std::size_t count : {0u, 1u, 9u, 10u, 19u, 200u}) {
    const auto all = tokens(count);
    const Split parts = split(all);
    EXPECT_EQ(parts.validation.size(), count / 10);
    EXPECT_EQ(parts.training.size() + parts.validation.size(), count);
    EXPECT_EQ(parts.training.data() + parts.training.size(), parts.validation.data());
  }
}

TEST(Windows, OverlapByOneTokenSoThatEachIsPredictedOnce) {
  const auto all = tokens(10);
  const Windows windows(all, 3, "training");
  ASSERT_EQ(windows.count(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto window = windows.window(i);
    ASSERT_EQ(window.size(), 4u);
    EXPECT_EQ(window.front(), 3 * i);
    EXPECT_EQ(window.back(), 3 * i + 3);
  }
}

TEST(Windows, CountsWhatFits) {
  const auto all = tokens(12);
  EXPECT_EQ(Windows(all, 11, "training").count(), 1);
  EXPECT_EQ(Windows(all, 1, "training").count(), 11);
  EXPECT_EQ(Windows(all, 5, "training").count(), 2);
  EXPECT_EQ(Windows(all, 6, "training").count(), 1);
}

TEST(Windows, TextShorterThanOneSequenceIsOneClearLine) {
  const auto all = tokens(12);
  const auto refusal = [&](const std::string& part) {
    return test::error_of<UsageError>([&] { Windows(all, 12, part); });
  };
  EXPECT_EQ(refusal("training"),
            "--data: its training part has 12 tokens, one sequence needs --seq + 1 = 13; give a "
            "longer text or a smaller --seq");
  EXPECT_EQ(refusal("validation"),
            "--data: its validation part has 12 tokens, one sequence needs --seq + 1 = 13; give a "
            "longer text or a smaller --seq, or --eval-batches 0");
}

}  // namespace
}  // namespace lockstep::data
