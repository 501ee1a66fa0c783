#include "train/shared_cores.h"

#include "machine/cores.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <sched.h>

namespace lockstep::train {
namespace {

TEST(SharedCores, AreCountedOnceHoweverManyRanksShareThem) {
  const std::vector<int> cores = machine::allowed_cores();
  const int all = machine::usable_cores(cores.size(), machine::cpu_quota());
  for (const test::RankResult& rank : test::run_ranks(3, [](Group& group) {
         return std::vector<double>{static_cast<double>(shared_cores(group))};
       })) {
    EXPECT_EQ(rank.values, std::vector<double>{static_cast<double>(all)});
  }
}

TEST(SharedCores, AddWhatEachRankIsPlacedOn) {
  const std::vector<int> cores = machine::allowed_cores();
  const auto results = test::run_ranks(2, [&cores](Group& group) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<std::size_t>(group.rank() == 0 ? cores.front() : cores.back()), &own);
    ::sched_setaffinity(0, sizeof own, &own);
    return std::vector<double>{static_cast<double>(shared_cores(group))};
  });
  const double expected = cores.size() > 1 ? 2 : 1;
  for (const test::RankResult& rank : results) {
    EXPECT_EQ(rank.values, std::vector<double>{expected});
  }
}

}  // namespace
}  // namespace lockstep::train
