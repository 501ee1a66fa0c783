// Ranks for tests of bits: one compute thread each, and no exception.
#pragma once

#include "lockstep/parallel.h"
#include "support/ranks.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <vector>

namespace lockstep::test {

// What `body` returned on each of `ranks` processes; any exception fails the test.
inline std::vector<std::vector<double>> run(
    int ranks, const std::function<std::vector<double>(Group&)>& body) {
  std::vector<std::vector<double>> all;
  for (const RankResult& result : run_ranks(ranks, [&body](Group& group) {
         at::set_num_threads(1);
         return body(group);
       })) {
    EXPECT_EQ(result.error, "");
    all.push_back(result.values);
  }
  return all;
}

inline ParallelOptions ddp(double bucket_mb = 25) {
  return {.stage = Stage::ddp, .bucket_mb = bucket_mb};
}

// What tests of means let a rank's loss differ by: 1, 2, …
inline double rank_factor(const Group& group) { return group.rank() + 1.0; }

}  // namespace lockstep::test
