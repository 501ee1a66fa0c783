#include "parallel/collector.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <optional>

namespace lockstep::parallel {
namespace {

using test::values_of;

// Records what is started; complete at once.
class RecordingExchange final : public Exchange {
 public:
  void start(const FullBucket& bucket) override {
    started.push_back(bucket.name);
    leaves.push_back(bucket.leaf);
  }
  void progress() override {}
  bool is_complete(std::size_t n) override { return n < started.size(); }
  void wait_for(std::size_t n) override { waited.push_back(n); }
  void finish() override { ++finished; }
  Range counts_squares_of(std::int64_t count) const override { return {0, count}; }

  std::vector<std::string> started;
  std::vector<std::optional<LeafOfBucket>> leaves;
  std::vector<std::size_t> waited;
  int finished = 0;
};

// Three buckets of one parameter each, filled in the order 0, 1, 2.
class CollectorTest : public testing::Test {
 protected:
  CollectorTest() {
    for (const char* name : {"p0", "p1", "p2"}) {
      owned_.push_back(std::make_unique<FlatParameter>(
          *device_,
          std::vector<NamedParameter>{
              {name, torch::zeros({2}, torch::requires_grad()), torch::kFloat32}},
          Spread{}));
      owned_.back()->attach_members(*device_);
      parts_.push_back(owned_.back().get());
    }
    gradients_ = std::make_unique<GradientMemory>(group_, parts_, GradientWidth::leaf);
    sum_ = std::make_unique<LeafSum>(*device_, parts_, *gradients_);
  }

  std::unique_ptr<GradientCollector> collector(Overlap overlap = Overlap::on) {
    return std::make_unique<GradientCollector>(
        *device_, exchange_, parts_, std::vector<Bucket>{{"b0", {0}}, {"b1", {1}}, {"b2", {2}}},
        overlap);
  }

  void begin(GradientCollector& collector, LeafOrder order = LeafOrder::running) {
    exchange_.started.clear();
    collector.begin_step(*sum_, order);
    collector.begin_leaf(0, 1.0);
  }

  void fire(GradientCollector& collector, std::size_t parameter, float value) {
    parts_[parameter]->member(0).tensor.mutable_grad() = torch::full({2}, value);
    collector.on_gradient(parameter);
  }

  void end(GradientCollector& collector) {
    collector.end_leaf();
    collector.finish(1.0);
  }

  // A first step in which every parameter fires once.
  void learn(GradientCollector& collector) {
    begin(collector);
    for (const std::size_t parameter : {0u, 1u, 2u}) {
      fire(collector, parameter, 1.0f);
    }
    end(collector);
  }

  std::unique_ptr<Device> device_ = make_cpu_device();
  Group group_ = Group::alone();
  std::vector<std::unique_ptr<FlatParameter>> owned_;
  std::vector<FlatParameter*> parts_;
  std::unique_ptr<GradientMemory> gradients_;
  std::unique_ptr<LeafSum> sum_;
  RecordingExchange exchange_;
};

using Names = std::vector<std::string>;

TEST_F(CollectorTest, FirstStepLearnsAndStartsAtItsEnd) {
  const auto all = collector();
  begin(*all);
  fire(*all, 0, 1.0f);
  EXPECT_EQ(exchange_.started, Names{});
  end(*all);
  EXPECT_EQ(exchange_.started, (Names{"b0", "b1", "b2"}));
  EXPECT_EQ(exchange_.finished, 1);
}

TEST_F(CollectorTest, BucketsStartAsTheyFillButInOrder) {
  const auto all = collector();
  learn(*all);
  begin(*all);
  fire(*all, 1, 1.0f);
  EXPECT_EQ(exchange_.started, Names{});
  fire(*all, 0, 1.0f);
  EXPECT_EQ(exchange_.started, (Names{"b0", "b1"}));
  fire(*all, 2, 1.0f);
  EXPECT_EQ(exchange_.started, (Names{"b0", "b1", "b2"}));
  end(*all);
  EXPECT_TRUE(all->overlapped());
  EXPECT_EQ(all->started(), 3);
}

TEST_F(CollectorTest, WithoutOverlapNothingStartsBeforeTheEnd) {
  const auto all = collector(Overlap::off);
  learn(*all);
  begin(*all);
  for (const std::size_t parameter : {0u, 1u, 2u}) {
    fire(*all, parameter, 1.0f);
  }
  EXPECT_EQ(exchange_.started, Names{});
  end(*all);
  EXPECT_EQ(exchange_.started, (Names{"b0", "b1", "b2"}));
  EXPECT_FALSE(all->overlapped());
}

TEST_F(CollectorTest, GradientsLeaveGradAndAbsentOnesBecomeZero) {
  const auto all = collector();
  learn(*all);
  begin(*all);
  fire(*all, 1, 7.0f);
  EXPECT_FALSE(parts_[1]->member(0).tensor.grad().defined());
  end(*all);
  EXPECT_EQ(values_of(gradients_->view(1, 0)), (std::vector<double>{7, 7}));
  EXPECT_EQ(values_of(gradients_->view(0, 0)), (std::vector<double>{0, 0}));
  EXPECT_TRUE(all->arrived(1));
  EXPECT_FALSE(all->arrived(0));
}

TEST_F(CollectorTest, ParameterThatFiresTwiceIsAwaitedTwice) {
  const auto all = collector();
  begin(*all);
  for (const std::size_t parameter : {0u, 0u, 1u, 2u}) {
    fire(*all, parameter, 2.0f);
  }
  end(*all);
  EXPECT_EQ(values_of(gradients_->view(0, 0)), (std::vector<double>{4, 4}));
  begin(*all);
  fire(*all, 0, 1.0f);
  EXPECT_EQ(exchange_.started, Names{});
  fire(*all, 0, 1.0f);
  EXPECT_EQ(exchange_.started, Names{"b0"});
}

TEST_F(CollectorTest, GradientAfterItsBucketWasExchangedIsNamed) {
  const auto all = collector();
  learn(*all);
  begin(*all);
  fire(*all, 0, 1.0f);
  try {
    fire(*all, 0, 1.0f);
    FAIL() << "a late gradient went unnoticed";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'p0'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("overlap"), std::string::npos) << error.what();
  }
}

TEST_F(CollectorTest, TreeAddsAParameterThatFiresTwiceAsOneLeafAndLeavesNothingInGrad) {
  const auto all = collector();
  for (int step = 0; step < 2; ++step) {
    begin(*all, LeafOrder::tree);
    for (const std::size_t parameter : {0u, 0u, 1u, 2u}) {
      fire(*all, parameter, 2.0f);
      EXPECT_FALSE(parts_[parameter]->member(0).tensor.grad().defined());
    }
    end(*all);
    EXPECT_EQ(values_of(gradients_->view(0, 0)), (std::vector<double>{4, 4}));
  }
}

TEST_F(CollectorTest, CarriedGradientIsTheFirstOfTheSum) {
  const auto all = collector();
  begin(*all);
  for (const std::size_t parameter : {0u, 1u}) {
    parts_[parameter]->member(0).tensor.mutable_grad() = torch::full({2}, 5.0f);
    all->carry(parameter);
  }
  fire(*all, 1, 2.0f);
  end(*all);
  EXPECT_EQ(values_of(gradients_->view(0, 0)), (std::vector<double>{5, 5}));
  EXPECT_EQ(values_of(gradients_->view(1, 0)), (std::vector<double>{7, 7}));
  EXPECT_TRUE(all->arrived(0));
  EXPECT_FALSE(all->arrived(2));
}

// Leaf by leaf LibTorch's own tensors travel, from the first step on.
TEST_F(CollectorTest, LeavesTravelFromWhereTheyAreAndTheThirdWaitsForTheFirst) {
  GradientWindows windows(*device_, group_, parts_);
  ShardSums shards(*device_, parts_, GradientWidth::leaf);
  const auto all = collector();
  all->begin_step(windows, shards, LeafOrder::running);
  all->begin_leaf(0, std::nullopt);
  const at::Tensor gradient = torch::full({2}, 3.0f);
  parts_[1]->member(0).tensor.mutable_grad() = gradient;
  all->on_gradient(1);
  EXPECT_EQ(exchange_.started, Names{});
  EXPECT_TRUE(all->arrived(1) == false && !parts_[1]->member(0).tensor.grad().defined());
  fire(*all, 0, 1.0f);
  EXPECT_EQ(exchange_.started, (Names{"b0", "b1"}));
  const at::Tensor sent = exchange_.leaves.at(1)->parts.at(0).members.at(0);
  EXPECT_EQ(sent.const_data_ptr(), gradient.const_data_ptr());
  EXPECT_EQ(exchange_.leaves[1]->parts[0].part, 1u);
  EXPECT_FALSE(exchange_.leaves[1]->last);
  EXPECT_TRUE(all->arrived(1));
  EXPECT_EQ(exchange_.waited, std::vector<std::size_t>{});
  all->end_leaf();
  EXPECT_EQ(exchange_.started, (Names{"b0", "b1", "b2"}));
  EXPECT_FALSE(exchange_.leaves.at(2)->parts.at(0).members.at(0).defined()) << "absent";
  EXPECT_EQ(exchange_.waited, std::vector<std::size_t>{0});
  EXPECT_FALSE(all->arrived(2));
  all->begin_leaf(1, 0.5);
  fire(*all, 0, 1.0f);
  EXPECT_EQ(exchange_.waited, (std::vector<std::size_t>{0, 1}));
  all->end_leaf();
  all->finish(0.5);
  EXPECT_EQ(exchange_.leaves.at(5)->number, 1);
  EXPECT_TRUE(exchange_.leaves[5]->last);
  EXPECT_EQ(all->started(), 6);
}

// As LibTorch would have added to .grad, until the bucket travels.
TEST_F(CollectorTest, ALeafsGradientThatComesInPartsTravelsAsTheirSum) {
  GradientWindows windows(*device_, group_, parts_);
  ShardSums shards(*device_, parts_, GradientWidth::leaf);
  const auto all = collector(Overlap::off);
  all->begin_step(windows, shards, LeafOrder::running);
  all->begin_leaf(0, 1.0);
  fire(*all, 0, 1.0f);
  fire(*all, 0, 2.0f);
  end(*all);
  EXPECT_EQ(values_of(exchange_.leaves.at(0)->parts.at(0).members.at(0)),
            (std::vector<double>{3, 3}));
}

TEST_F(CollectorTest, SparseGradientIsNamed) {
  const auto all = collector();
  begin(*all);
  parts_[1]->member(0).tensor.mutable_grad() = torch::ones({2}).to_sparse();
  EXPECT_THROW(all->on_gradient(1), UsageError);
}

TEST_F(CollectorTest, AbandonWaitsForWhatWasStarted) {
  const auto all = collector();
  learn(*all);
  begin(*all);
  fire(*all, 0, 1.0f);
  all->abandon();
  EXPECT_EQ(exchange_.finished, 2);
  EXPECT_FALSE(all->arrived(0));
}

}  // namespace
}  // namespace lockstep::parallel
