#include "train/memory.h"

#include "lockstep/parallel.h"
#include "lockstep/unit.h"
#include "support/ranks.h"
#include "train/counting_allocator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace lockstep::train {
namespace {

constexpr std::int64_t kSize = 64 << 20;

void expect_about(std::int64_t bytes, std::int64_t expected) {
  EXPECT_GT(bytes, expected - expected / 50);
  EXPECT_LT(bytes, expected + expected / 50);
}

TEST(ResidentMemory, SeesPrivateMemoryOnceItIsTouched) {
  const Resident before = resident_memory();
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_LT(resident_memory().total() - before.total(), kSize / 50);
  std::memset(memory, 1, kSize);
  expect_about(resident_memory().anonymous - before.anonymous, kSize);
  EXPECT_EQ(resident_memory().shared, before.shared);
  ::munmap(memory, kSize);
  EXPECT_LT(resident_memory().total() - before.total(), kSize / 50);
}

TEST(ResidentMemory, SeesSharedMemory) {
  const Resident before = resident_memory();
  const int memory = ::memfd_create("test", 0);
  ASSERT_EQ(::ftruncate(memory, kSize), 0);
  void* mapping = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  std::memset(mapping, 1, kSize);
  expect_about(resident_memory().shared - before.shared, kSize);
  expect_about(resident_memory().total() - before.total(), kSize);
  ::munmap(mapping, kSize);
  ::close(memory);
}

const MemorySample& at(const MemoryWatch& watch, Moment moment) {
  return watch.phases()[static_cast<std::size_t>(moment)];
}

TEST(MemoryWatch, TellsActivationsFromWhatWasThereBefore) {
  count_allocations();
  const torch::Tensor weights = torch::ones({kSize / 8});  // f32: half of kSize
  MemoryWatch watch(resident_memory().total());
  watch.sample(Moment::before_forward, {.parameters = 7});
  {
    const torch::Tensor activations = torch::ones({kSize / 4});   // f32
    { const torch::Tensor passing = torch::empty({kSize / 4}); }  // never touched
    watch.sample(Moment::after_forward, {.parameters = 7, .transient = 3});
  }
  watch.sample(Moment::after_backward, {.parameters = 7, .transient = 2});
  watch.sample(Moment::after_update, {.parameters = 7});
  const MemorySample& forward = at(watch, Moment::after_forward);
  expect_about(forward.activations, kSize);
  expect_about(forward.activations_peak, 2 * kSize);
  expect_about(*forward.resident, kSize);
  EXPECT_EQ(forward.held.parameters, 7);
  EXPECT_EQ(forward.held.transient, 3);
  const MemorySample& backward = at(watch, Moment::after_backward);
  EXPECT_LT(backward.activations, kSize / 50);
  expect_about(backward.activations_peak, kSize);
  EXPECT_LT(*backward.resident, kSize / 4);
  EXPECT_EQ(backward.held.transient, 2);
  EXPECT_LT(at(watch, Moment::after_update).activations_peak, kSize / 50);
  EXPECT_EQ(at(watch, Moment::before_forward).activations, 0);
  EXPECT_LT(*at(watch, Moment::before_forward).resident, kSize / 4);
  EXPECT_GT(watch.baseline(), kSize / 2);
}

TEST(MemoryWatch, KeepsTheMostOfSeveralMicroBatchesAndCountsWithoutTheKernel) {
  count_allocations();
  MemoryWatch watch(0);
  EXPECT_FALSE(watch.count(Moment::before_forward, {.gradients = 1}).resident.has_value());
  EXPECT_EQ(watch.count(Moment::after_update, {.gradients = 1}).held.gradients, 1);
  EXPECT_FALSE(at(watch, Moment::before_forward).resident.has_value());
  watch.sample(Moment::before_forward, {});
  torch::Tensor activations = torch::empty({kSize / 4});
  watch.sample(Moment::after_forward, {});
  activations = torch::Tensor();
  watch.sample(Moment::after_backward, {});
  const torch::Tensor kept = torch::empty({kSize / 8});
  watch.sample(Moment::before_forward, {});
  watch.sample(Moment::after_forward, {});
  watch.sample(Moment::after_backward, {});
  EXPECT_EQ(at(watch, Moment::before_forward).activations, 0) << "at rest: before the first";
  expect_about(at(watch, Moment::after_forward).activations, kSize);
  expect_about(at(watch, Moment::after_backward).activations, kSize / 2);
}

// 4 MB of weights; `unused` never takes part. Tells what is held while it can be read.
struct WideBlockImpl : torch::nn::Module {
  WideBlockImpl() {
    linear = register_module("linear", torch::nn::Linear(1024, 1024));
    unused = register_parameter("unused", torch::ones({1 << 18}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y = linear(x);
    live = live_tensor_bytes();
    resident = resident_memory().total();
    return y;
  }
  torch::nn::Linear linear{nullptr};
  torch::Tensor unused;
  std::int64_t live = 0;
  std::int64_t resident = 0;
};
TORCH_MODULE(WideBlock);

struct WideNet : torch::nn::Module {
  WideNet() {
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Unit<WideBlock>()));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto& block : blocks) {
      x = block(x);
    }
    return x;
  }
  std::vector<Unit<WideBlock>> blocks;
};

constexpr std::int64_t kFewKB = 64 << 10;  // rows of activations, and what the allocator rounds
constexpr std::int64_t kOneMB = 1 << 20;   // what libraries keep

void expect_at_rest(std::int64_t live, std::int64_t resident) {
  EXPECT_EQ(live_tensor_bytes(), live);
  EXPECT_NEAR(static_cast<double>(resident_memory().total()), static_cast<double>(resident),
              kOneMB);
}

// On one host a gathered unit takes no memory, and neither forward nor backward leaves any behind.
TEST(RestingMemory, IsBackAfterForwardAndAfterBackwardOfZero3) {
  const auto results = test::run_ranks(2, [](Group& group) {
    torch::set_num_threads(1);
    count_allocations();
    auto net = std::make_shared<WideNet>();
    Parallel parallel(net, group, {.stage = Stage::zero3, .reshard = Reshard::always});
    AdamW optimizer = parallel.adamw({.lr = 1e-3});
    const torch::Tensor x = torch::ones({4, 1024});
    std::int64_t live = 0;
    std::int64_t resident = 0;
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {  // the first two have touched everything
        live = live_tensor_bytes();
        resident = resident_memory().total();
      }
      {
        const torch::Tensor loss = net->forward(x).pow(2).mean();
        if (step >= 2) {
          EXPECT_LT(net->blocks[1]->live, live + kFewKB);
          EXPECT_LT(net->blocks[1]->resident, resident + kOneMB);
          EXPECT_LT(live_tensor_bytes(), live + 2 * kFewKB) << "after forward";
        }
        loss.backward();
      }
      if (step >= 2) {
        expect_at_rest(live, resident);
      }
      group.barrier();  // the other's pages are counted too
      optimizer.step();
      if (step >= 2) {
        expect_at_rest(live, resident);
      }
      group.barrier();
    }
    return std::vector<double>();
  });
  for (const test::RankResult& result : results) {
    EXPECT_EQ(result.error, "");
  }
}

}  // namespace
}  // namespace lockstep::train
