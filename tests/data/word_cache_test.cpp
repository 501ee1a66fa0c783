#include "data/word_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::data {
namespace {

using Ids = std::vector<TokenId>;

Ids found(const WordCache& cache, const std::string& word) {
  const auto ids = cache.find(word);
  return {ids.begin(), ids.end()};
}

TEST(WordCache, FindsWhatWasAdded) {
  WordCache cache;
  EXPECT_EQ(found(cache, "one"), Ids{});
  cache.add("one", Ids{1});
  cache.add("two", Ids{2, 3});
  EXPECT_EQ(found(cache, "one"), Ids{1});
  EXPECT_EQ(found(cache, "two"), (Ids{2, 3}));
  EXPECT_EQ(found(cache, "on"), Ids{});
}

TEST(WordCache, NeverGivesTheIdsOfAnotherWordHoweverManyThereAre) {
  WordCache cache;
  for (TokenId i = 0; i < 300'000; ++i) {
    const std::string word = "w" + std::to_string(i);
    ASSERT_EQ(found(cache, word), Ids{});
    cache.add(word, Ids{i, i + 1});
    ASSERT_EQ(found(cache, word), (Ids{i, i + 1}));
    const std::string before = "w" + std::to_string(i / 2);
    const Ids again = found(cache, before);
    ASSERT_TRUE(again.empty() || again == (Ids{i / 2, i / 2 + 1})) << before;
  }
}

TEST(WordCache, LongWordsAreNotRemembered) {
  WordCache cache;
  cache.add(std::string(100'000, 'x'), Ids(70'000, 1));
  EXPECT_EQ(found(cache, std::string(100'000, 'x')), Ids{});
}

}  // namespace
}  // namespace lockstep::data
