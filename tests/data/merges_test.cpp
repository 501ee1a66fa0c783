#include "data/merges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace lockstep::data {
namespace {

using Ids = std::vector<TokenId>;

// As the definition has it: look at all pairs, join the best one, begin again.
Ids merged_naively(const std::vector<Merge>& merges, Ids ids) {
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == ids[i] && merges[rank].right == ids[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == merges.size()) {
      return ids;
    }
    ids[best] = merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

Ids merged(const std::vector<Merge>& merges, Ids ids) {
  ids.resize(Merges(merges).apply(ids));
  return ids;
}

// Merges over `letters` single ids, also of what earlier ones made, each pair once. Ranks are
// shuffled where a merge may come before those that it needs.
std::vector<Merge> random_merges(std::mt19937& random, TokenId letters, std::size_t count) {
  std::map<std::pair<TokenId, TokenId>, TokenId> pairs;
  for (TokenId next = letters; pairs.size() < count; ++next) {
    pairs.emplace(std::pair{random() % next, random() % next}, next);
  }
  std::vector<Merge> merges;
  for (const auto& [pair, merged] : pairs) {
    merges.push_back({pair.first, pair.second, merged});
  }
  std::shuffle(merges.begin(), merges.end(), random);
  return merges;
}

TEST(Merges, AreThoseOfTheDefinitionForEveryLength) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    const TokenId letters = 1 + random() % 4;
    const auto merges = random_merges(random, letters, std::size_t{1} + random() % 20);
    for (std::size_t length = 0; length < 100; ++length) {
      Ids ids(length);
      std::generate(ids.begin(), ids.end(),
                    [&] { return static_cast<TokenId>(random() % letters); });
      ASSERT_EQ(merged(merges, ids), merged_naively(merges, ids)) << round << " " << length;
    }
  }
}

TEST(Merges, TheLeftmostOfEqualPairsJoins) {
  const std::vector<Merge> merges{{0, 0, 1}};
  EXPECT_EQ(merged(merges, Ids(3, 0)), (Ids{1, 0}));
  EXPECT_EQ(merged(merges, Ids(41, 0)).back(), 0u);
}

TEST(Merges, NoneLeaveAllAsItIs) {
  EXPECT_EQ(merged({}, {5, 6, 7}), (Ids{5, 6, 7}));
  EXPECT_EQ(merged({}, Ids(100, 5)), Ids(100, 5));
  EXPECT_EQ(merged({{0, 0, 1}}, {}), Ids{});
}

TEST(Merges, TheLaterOfTwoEqualPairsCounts) {
  EXPECT_EQ(merged({{0, 0, 1}, {0, 1, 2}, {0, 0, 3}}, {0, 0}), Ids{3});
}

// Looking at every pair each time would take hours here.
TEST(Merges, AMillionEqualIdsAreNotQuadratic) {
  std::vector<Merge> merges;
  for (TokenId id = 0; id < 8; ++id) {
    merges.push_back({id, id, id + 1});
  }
  EXPECT_EQ(merged(merges, Ids(1 << 20, 0)), Ids(1 << 12, 8));
}

}  // namespace
}  // namespace lockstep::data
