#include "support/leaks.h"

#include "comm/processes.h"
#include "support/ranks.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace lockstep::test {
namespace {

std::byte* volatile last_block = nullptr;

// Several blocks, as a stale register may still point at one.
void lose_memory() {
  for (int i = 0; i < 8; ++i) {
    last_block = new std::byte[100];
  }
  last_block = nullptr;
}

std::vector<double> lose_on_rank_1(Group& group) {
  if (group.rank() == 1) {
    lose_memory();
  }
  group.barrier();
  return {};
}

TEST(Leaks, a_rank_that_loses_memory_fails_its_test) {
  EXPECT_NONFATAL_FAILURE(run_ranks(2, lose_on_rank_1), "rank 1 lost memory");
}

TEST(Leaks, so_does_a_process_whose_test_looks_at_its_words_only) {
  const auto run_process = [] {
    Processes ranks;
    ranks.start([] {
      lose_memory();
      throw std::runtime_error("expected");
    });
    return ranks.end(0).text;
  };
  EXPECT_NONFATAL_FAILURE(EXPECT_EQ(run_process(), "other: expected"), "rank 0 lost memory");
}

TEST(Leaks, what_a_rank_still_holds_is_not_lost) {
  static std::vector<double> kept;
  const auto results = run_ranks(2, [](Group& group) {
    kept.assign(1000, group.rank());
    return kept;
  });
  EXPECT_EQ(results[1].values, std::vector<double>(1000, 1.0));
}

}  // namespace
}  // namespace lockstep::test
