// All configurations of which pairwise_test.cpp runs a covering set; for ./check --full.
#include "train/configurations.h"

namespace lockstep::train {
namespace {

// All rows of one kind.
std::vector<Row> rows_of(std::size_t kind) {
  std::vector<Row> rows{Row{kind}};
  for (std::size_t factor = 1; factor < kSizes.size(); ++factor) {
    std::vector<Row> longer;
    for (const Row& row : rows) {
      for (std::size_t value = 0; value < kSizes[factor]; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

class EveryConfiguration : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryConfiguration, ::testing::Range<std::size_t>(0, 4));

TEST_P(EveryConfiguration, EndsWithTheSameBits) {
  Configurations().train(4, rows_of(GetParam()), /*reproducible=*/false);
}

TEST_P(EveryConfiguration, EndsWithTheSameBitsOnAnyRanksWhereReproducible) {
  Configurations configurations;
  for (const int ranks : kRanks) {
    configurations.train(ranks, rows_of(GetParam()), /*reproducible=*/true);
  }
}

}  // namespace
}  // namespace lockstep::train
