// Twenty rounds of fault_matrix_test's processes, for ./check --full.
#include "comm/fault_rounds.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

class FaultMatrixFull : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Rounds, FaultMatrixFull, ::testing::Range(1u, 21u));

TEST_P(FaultMatrixFull, whatever_befalls_a_rank_ends_all_rightly) {
  test::kill_each_rank_inside_each_collective(GetParam());
  test::kill_a_rank_inside_each_algorithm(GetParam());
  test::exit_inside_each_collective(GetParam());
  for (const comm::Kind kind : test::kEveryKind) {
    test::stop_within_the_deadline({.kind = kind}, static_cast<int>(GetParam()) % 3);
  }
  const std::vector<comm::Kind> kinds(test::kEveryKind.begin(), test::kEveryKind.end());
  test::stop_past_the_deadline({kinds.begin(), kinds.begin() + 5}, GetParam());
  test::stop_past_the_deadline({kinds.begin() + 5, kinds.end()}, GetParam());
}

}  // namespace
}  // namespace lockstep
