// A covering set of configurations: every two settings meet in one of them, and none changes a bit.
#include "train/configurations.h"

namespace lockstep::train {
namespace {

TEST(Pairwise, EveryTwoSettingsMeet) {
  const test::PairwiseSet set(kSizes);
  for (std::size_t a = 0; a < kSizes.size(); ++a) {
    for (std::size_t b = a + 1; b < kSizes.size(); ++b) {
      std::set<std::pair<std::size_t, std::size_t>> met;
      for (const Row& row : set.rows()) {
        met.emplace(row[a], row[b]);
      }
      EXPECT_EQ(met.size(), kSizes[a] * kSizes[b]) << a << " and " << b;
    }
  }
  EXPECT_LE(set.rows().size(), 60u);
}

// Of each kind first the plainest, as what the others are held to.
std::vector<Row> rows_of(const std::vector<std::size_t>& sizes) {
  std::vector<Row> rows;
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    rows.emplace_back(sizes.size(), 0);
    rows.back()[0] = kind;
  }
  const test::PairwiseSet set(sizes);
  rows.insert(rows.end(), set.rows().begin(), set.rows().end());
  return rows;
}

TEST(Pairwise, FourRanksEndWithTheSameBitsInEveryConfiguration) {
  Configurations().train(4, rows_of(kSizes), /*reproducible=*/false);
}

// With the number of ranks as one more factor.
TEST(Pairwise, OneTwoAndFourRanksEndWithTheSameBitsWhereReproducible) {
  std::vector<std::size_t> sizes = kSizes;
  sizes.push_back(kRanks.size());
  const std::vector<Row> rows = rows_of(sizes);
  Configurations configurations;
  for (std::size_t ranks = 0; ranks < kRanks.size(); ++ranks) {
    std::vector<Row> chosen;
    std::ranges::copy_if(rows, std::back_inserter(chosen),
                         [&](const Row& row) { return row.back() == ranks; });
    configurations.train(kRanks.at(ranks), chosen, /*reproducible=*/true);
  }
}

}  // namespace
}  // namespace lockstep::train
