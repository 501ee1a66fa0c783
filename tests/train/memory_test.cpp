#include "train/memory.h"

#include "train/counting_allocator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>

#include <cstring>

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

}  // namespace
}  // namespace lockstep::train
