#include "data/windows.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <span>
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
    const auto held = tokens(count);
    const TokenSpan all(std::span<const std::uint8_t>{held});
    const Split parts = split(all);
    EXPECT_EQ(parts.validation.size(), count / 10);
    EXPECT_EQ(parts.training.size() + parts.validation.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t training = parts.training.size();
      EXPECT_EQ(i < training ? parts.training[i] : parts.validation[i - training], held[i]);
    }
  }
}

TEST(Windows, OverlapByOneTokenSoThatEachIsPredictedOnce) {
  const auto held = tokens(10);
  const TokenSpan all(std::span<const std::uint8_t>{held});
  const Windows windows(all, 3, "training");
  ASSERT_EQ(windows.count(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto window = windows.window(i);
    ASSERT_EQ(window.size(), 4u);
    EXPECT_EQ(window[0], static_cast<TokenId>(3 * i));
    EXPECT_EQ(window[3], static_cast<TokenId>(3 * i + 3));
  }
}

TEST(TokenSpan, ReadsIdsOfEveryWidth) {
  const std::vector<std::uint16_t> two{1, 60'000, 3};
  const std::vector<std::uint32_t> four{1, 100'000, 3};
  const TokenSpan narrow(std::span<const std::uint16_t>{two});
  const TokenSpan wide(std::span<const std::uint32_t>{four});
  EXPECT_EQ(narrow[1], 60'000u);
  EXPECT_EQ(wide.last(2)[0], 100'000u);
  EXPECT_EQ(wide.first(1).size(), 1u);
  EXPECT_EQ(TokenSpan().size(), 0u);
  EXPECT_EQ(width_bytes(256), 1);
  EXPECT_EQ(width_bytes(257), 2);
  EXPECT_EQ(width_bytes(65'536), 2);
  EXPECT_EQ(width_bytes(65'537), 4);
}

TEST(Windows, CountsWhatFits) {
  const auto held = tokens(12);
  const TokenSpan all(std::span<const std::uint8_t>{held});
  EXPECT_EQ(Windows(all, 11, "training").count(), 1);
  EXPECT_EQ(Windows(all, 1, "training").count(), 11);
  EXPECT_EQ(Windows(all, 5, "training").count(), 2);
  EXPECT_EQ(Windows(all, 6, "training").count(), 1);
}

TEST(Windows, TextShorterThanOneSequenceIsOneClearLine) {
  const auto held = tokens(12);
  const TokenSpan all(std::span<const std::uint8_t>{held});
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
