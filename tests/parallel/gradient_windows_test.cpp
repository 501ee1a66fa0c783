#include "parallel/gradient_windows.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

// Buckets are complete when the test says so.
class ManualExchange final : public Exchange {
 public:
  void start(const FullBucket&) override {}
  void progress() override {}
  bool is_complete(std::size_t n) override { return n < complete; }
  void wait_for(std::size_t n) override { waited.push_back(n); }
  void finish() override {}
  Range counts_squares_of(std::int64_t count) const override { return {0, count}; }

  std::size_t complete = 0;
  std::vector<std::size_t> waited;
};

class GradientWindowsTest : public testing::Test {
 protected:
  GradientWindowsTest()
      : first_(
            *device_,
            {{"a", torch::zeros({3}), torch::kFloat32}, {"b", torch::zeros({70}), torch::kFloat32}},
            {}),
        second_(*device_, {{"c", torch::zeros({2}), torch::kFloat32}}, {}) {}

  std::vector<float> held(std::size_t part) const {
    const SymmetricSpan& span = windows_.span(part);
    const auto* values = static_cast<const float*>(span.data());
    return {values, values + span.count};
  }

  std::unique_ptr<Device> device_ = make_cpu_device();
  Group group_ = Group::alone();
  FlatParameter first_;
  FlatParameter second_;
  ManualExchange exchange_;
  GradientWindows windows_{
      *device_, group_, exchange_, {&first_, &second_}, {{"b0", {0}}, {"b1", {1}}}};
};

TEST_F(GradientWindowsTest, TwoBucketsTravelAndTheThirdWaitsForTheFirst) {
  EXPECT_EQ(windows_.bytes(), 2 * 192 * 4) << "two of the largest bucket";
  windows_.begin_step();
  EXPECT_TRUE(windows_.try_open(0));
  EXPECT_FALSE(windows_.try_open(1)) << "while bucket 0 is open";
  const void* const window = windows_.span(0).data();
  windows_.close();
  EXPECT_TRUE(windows_.try_open(1));
  EXPECT_NE(windows_.span(1).data(), window);
  windows_.close();
  EXPECT_FALSE(windows_.try_open(0)) << "the next leaf's";
  exchange_.complete = 1;
  EXPECT_TRUE(windows_.try_open(0));
  EXPECT_EQ(windows_.span(0).data(), window);
  windows_.close();
  windows_.open(1);
  EXPECT_EQ(exchange_.waited, std::vector<std::size_t>{1});
}

// The norm counts every element of a bucket.
TEST_F(GradientWindowsTest, NothingOfAnotherBucketIsLeftInPadding) {
  windows_.begin_step();
  for (int turn = 0; turn < 2; ++turn) {
    windows_.open(0);
    windows_.put(0, 0, 0, true, torch::full({3}, 1.0f));
    windows_.put(0, 1, 0, true, torch::full({70}, 2.0f));
    windows_.close();
  }
  windows_.open(1);
  windows_.clear(1, 0);
  EXPECT_EQ(held(1), std::vector<float>(64, 0.0f));
  windows_.put(1, 0, 1, false, torch::full({2}, 5.0f));
  std::vector<float> expected(64, 0.0f);
  expected[0] = expected[1] = 5.0f;
  EXPECT_EQ(held(1), expected);
}

}  // namespace
}  // namespace lockstep::parallel
