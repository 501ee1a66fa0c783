#include "train/batches.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <span>
#include <vector>

namespace lockstep::train {
namespace {

TEST(Batches, TargetsAreTheTokensThatFollow) {
  std::vector<std::uint8_t> text(250);
  std::iota(text.begin(), text.end(), std::uint8_t{0});
  const data::Windows windows(std::span<const std::uint8_t>{text}, 4, "training");
  constexpr std::array<std::int64_t, 2> kChosen{60, 1};
  const Batch batch = make_batch(windows, kChosen);
  const auto expected =
      torch::tensor({{240, 241, 242, 243}, {4, 5, 6, 7}}, torch::kInt64);  // [B, T]
  EXPECT_TRUE(torch::equal(batch.tokens, expected));
  EXPECT_TRUE(torch::equal(batch.targets, expected + 1));
}

}  // namespace
}  // namespace lockstep::train
