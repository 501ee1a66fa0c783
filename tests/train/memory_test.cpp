#include "train/memory.h"

#include "lockstep/parallel.h"
#include "lockstep/unit.h"
#include "support/ranks.h"
#include "train/counting_allocator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>

#include <cstring>
#include <vector>

namespace lockstep::train {
namespace {

constexpr std::int64_t kSize = 64 << 20;

void expect_about(std::int64_t bytes, std::int64_t expected) {
  EXPECT_GT(bytes, expected - expected / 50);
  EXPECT_LT(bytes, expected + expected / 50);
}

TEST(ResidentBytes, SeePrivateMemoryOnceItIsTouched) {
  const std::int64_t before = resident_bytes();
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_LT(resident_bytes() - before, kSize / 50);
  std::memset(memory, 1, kSize);
  expect_about(resident_bytes() - before, kSize);
  ::munmap(memory, kSize);
  EXPECT_LT(resident_bytes() - before, kSize / 50);
}

TEST(ResidentBytes, SeeSharedMemory) {
  const std::int64_t before = resident_bytes();
  const int memory = ::memfd_create("test", 0);
  ASSERT_EQ(::ftruncate(memory, kSize), 0);
  void* mapping = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  std::memset(mapping, 1, kSize);
  expect_about(resident_bytes() - before, kSize);
  ::munmap(mapping, kSize);
  ::close(memory);
}

TEST(MemoryWatch, TellsActivationsFromWhatWasThereBefore) {
  count_allocations();
  const torch::Tensor weights = torch::ones({kSize / 8});  // f32: half of kSize
  MemoryWatch watch(resident_bytes());
  watch.begin();
  {
    const torch::Tensor activations = torch::ones({kSize / 4});  // f32
    watch.sample();
  }
  watch.sample();
  expect_about(watch.activations_peak(), kSize);
  expect_about(watch.resident_peak(), kSize);
  EXPECT_LT(watch.resident_at_rest(), kSize / 4);
  EXPECT_GT(watch.baseline(), kSize / 2);
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
    resident = resident_bytes();
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
  EXPECT_NEAR(static_cast<double>(resident_bytes()), static_cast<double>(resident), kOneMB);
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
        resident = resident_bytes();
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
