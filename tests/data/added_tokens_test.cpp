#include "data/added_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace lockstep::data {
namespace {

using Matches = std::vector<std::tuple<std::size_t, std::size_t, TokenId>>;

Matches matches(const AddedTokens& tokens, std::string_view text) {
  Matches found;
  for (const auto& match : tokens.find(text)) {
    found.emplace_back(match.begin, match.end, match.id);
  }
  return found;
}

TEST(AddedTokens, TheLongestCountsAndNoneOverlap) {
  const AddedTokens tokens({{"<a", 1}, {"<a>", 2}, {"a", 3}, {">>", 4}});
  EXPECT_EQ(matches(tokens, "<a>>x<aa"), (Matches{{0, 3, 2}, {5, 7, 1}, {7, 8, 3}}));
  EXPECT_EQ(matches(tokens, ""), Matches{});
  EXPECT_EQ(matches(tokens, "<>"), Matches{});
}

TEST(AddedTokens, MayBeNone) { EXPECT_EQ(matches(AddedTokens(), "<a>"), Matches{}); }

TEST(AddedTokens, StandAtTheEndAndCutShortNot) {
  const AddedTokens tokens({{"\xe2\x82\xac", 1}});
  EXPECT_EQ(matches(tokens, "x\xe2\x82\xac"), (Matches{{1, 4, 1}}));
  EXPECT_EQ(matches(tokens, "x\xe2\x82"), Matches{});
}

}  // namespace
}  // namespace lockstep::data
