#include "train/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <malloc.h>

namespace lockstep::train {
namespace {

// LibTorch frees through a plain function pointer, so the counts can't live in an object of ours.
std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};

std::int64_t size_of_block(void* block) {
  return static_cast<std::int64_t>(::malloc_usable_size(block));
}

void release(void* block) {
  live_bytes.fetch_sub(size_of_block(block), std::memory_order_relaxed);
  c10::free_cpu(block);
}

void count(std::int64_t bytes) {
  const std::int64_t live = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = c10::alloc_cpu(bytes);
    count(size_of_block(block));
    // The context equals the pointer: LibTorch may then hand the block on as raw memory.
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

}  // namespace

void count_allocations() {
  static CountingAllocator allocator;
  constexpr std::uint8_t kPriority = 255;  // above whatever LibTorch registered
  c10::SetAllocator(c10::kCPU, &allocator, kPriority);
}

std::int64_t live_tensor_bytes() { return live_bytes.load(std::memory_order_relaxed); }

std::int64_t take_peak_tensor_bytes() {
  return peak_bytes.exchange(live_tensor_bytes(), std::memory_order_relaxed);
}

}  // namespace lockstep::train
