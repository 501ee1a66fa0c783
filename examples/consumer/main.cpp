// Two ranks, here two threads, add their numbers.
#include "lockstep/group.h"

#include <cstdio>
#include <span>
#include <thread>
#include <vector>

namespace {

// Rank r contributes r+1 three times.
std::vector<float> sum_on(lockstep::Group& group) {
  std::vector<float> values(3, static_cast<float>(group.rank() + 1));
  group.all_reduce(std::span(values), {.name = "numbers"}).wait();
  return values;
}

}  // namespace

int main() {
  std::vector<lockstep::Group> groups = lockstep::Group::of_threads(2);
  std::vector<std::vector<float>> sums(2);
  {
    std::jthread second([&] { sums[1] = sum_on(groups[1]); });
    sums[0] = sum_on(groups[0]);
  }
  for (const std::vector<float>& sum : sums) {
    std::printf("%g %g %g\n", sum[0], sum[1], sum[2]);
  }
}
