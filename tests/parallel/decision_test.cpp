#include "parallel/decision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace lockstep::parallel {
namespace {

// One decide() on as many threads as there are inputs.
std::vector<Decision> decide_on_threads(const std::vector<std::vector<float>>& values,
                                        const std::vector<std::vector<bool>>& arrived,
                                        const std::vector<std::uint32_t>& orders = {}) {
  std::vector<Group> groups = Group::of_threads(static_cast<int>(values.size()));
  std::vector<Decision> decisions(values.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    threads.emplace_back([&, rank] {
      optim::SquareSum squares;
      squares.add(values[rank].data(), Dtype::f32, static_cast<std::int64_t>(values[rank].size()));
      decisions[rank] = decide(groups[rank], squares, arrived[rank],
                               orders.empty() ? std::nullopt : std::optional(orders[rank]));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return decisions;
}

TEST(Decision, NormPresenceAndFinitenessAreOnesForAllRanks) {
  for (const Decision& decision :
       decide_on_threads({{3.0f}, {}, {4.0f}},
                         {{true, false, false}, {false, false, true}, {true, false, false}})) {
    EXPECT_EQ(decision.norm, 5.0);
    EXPECT_TRUE(decision.all_finite);
    EXPECT_EQ(decision.present, (std::vector<bool>{true, false, true}));
  }
}

TEST(Decision, OneInfinityIsEveryonesBusiness) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const Decision& decision : decide_on_threads({{1.0f}, {2.0f, bad}}, {{true}, {true}})) {
      EXPECT_FALSE(decision.all_finite);
      EXPECT_TRUE(std::isnan(decision.norm));
    }
  }
}

TEST(Decision, NormDoesNotHangOnWhoCountsWhat) {
  std::vector<float> values;
  for (int i = 0; i < 640; ++i) {
    values.push_back(std::sin(static_cast<float>(i)) * std::pow(10.0f, static_cast<float>(i % 9)));
  }
  const double whole = decide_on_threads({values}, {{}})[0].norm;
  for (const std::size_t cut : {64u, 192u, 576u}) {
    const std::vector<float> low(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(cut));
    const std::vector<float> high(values.begin() + static_cast<std::ptrdiff_t>(cut), values.end());
    EXPECT_EQ(decide_on_threads({high, low}, {{}, {}})[1].norm, whole);
  }
}

// Also where one is the mean of all.
TEST(Decision, SaysOnEveryRankWhetherOrdersAgree) {
  constexpr std::uint32_t kLargest = std::numeric_limits<std::uint32_t>::max();
  const std::vector<std::vector<std::uint32_t>> agree{{5, 5, 5}, {kLargest, kLargest}, {0}};
  const std::vector<std::vector<std::uint32_t>> differ{
      {1, 2, 3}, {5, 5, 4}, {0, kLargest}, {kLargest, kLargest - 1, kLargest, kLargest}};
  for (const auto* const cases : {&agree, &differ}) {
    for (const std::vector<std::uint32_t>& orders : *cases) {
      const std::vector<std::vector<float>> values(orders.size(), {3.0f});
      const std::vector<std::vector<bool>> arrived(orders.size(), {true, false});
      for (const Decision& decision : decide_on_threads(values, arrived, orders)) {
        EXPECT_EQ(decision.orders_agree, cases == &agree) << orders[0];
        EXPECT_EQ(decision.present, (std::vector<bool>{true, false}));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::parallel
