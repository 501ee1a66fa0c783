// One direction between two ranks of a host: a ring of bytes in shared memory, one writer and one
// reader. Zeroed memory is an empty line.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep::comm {

class Line {
 public:
  static constexpr std::int64_t kBytes = 128 << 10;  // in flight at most

  // Copies as much of `bytes` bytes as there is room for, or as has been written; returns how many.
  // Publishing is sequentially consistent against going to sleep (control.h).
  std::int64_t write(const std::byte* from, std::int64_t bytes) {
    const std::int64_t written = written_.load(std::memory_order_relaxed);
    const std::int64_t room = kBytes - (written - read_.load(std::memory_order_acquire));
    const std::int64_t moved = std::min(bytes, room);
    if (moved > 0) {
      const std::int64_t first = std::min(moved, kBytes - written % kBytes);
      std::memcpy(&ring_[static_cast<std::size_t>(written % kBytes)], from, size(first));
      std::memcpy(ring_.data(), from + first, size(moved - first));
      written_.store(written + moved, std::memory_order_seq_cst);
    }
    return moved;
  }

  std::int64_t read(std::byte* to, std::int64_t bytes) {
    const std::int64_t read = read_.load(std::memory_order_relaxed);
    const std::int64_t there = written_.load(std::memory_order_acquire) - read;
    const std::int64_t moved = std::min(bytes, there);
    if (moved > 0) {
      const std::int64_t first = std::min(moved, kBytes - read % kBytes);
      std::memcpy(to, &ring_[static_cast<std::size_t>(read % kBytes)], size(first));
      std::memcpy(to + first, ring_.data(), size(moved - first));
      read_.store(read + moved, std::memory_order_seq_cst);
    }
    return moved;
  }

 private:
  static std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

  alignas(64) std::atomic<std::int64_t> written_;
  alignas(64) std::atomic<std::int64_t> read_;
  alignas(64) std::array<std::byte, kBytes> ring_;
};

}  // namespace lockstep::comm
