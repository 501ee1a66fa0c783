// An array between guard elements, at a chosen misalignment: a kernel that reads or writes past its
// range changes a guard (or, under a sanitizer, stops).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lockstep::test {

template <class T>
class Guarded {
 public:
  static constexpr std::size_t kGuard = 8;

  // The first element lies `misalignment` elements behind a 64-byte boundary.
  explicit Guarded(std::size_t count, std::size_t misalignment = 0)
      : bytes_((count + misalignment + 2 * kGuard) * sizeof(T) + 128, kPattern), count_(count) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data()) + kGuard * sizeof(T);
    begin_ = kGuard * sizeof(T) + (64 - address % 64) % 64 + misalignment * sizeof(T);
  }

  T* data() { return reinterpret_cast<T*>(bytes_.data() + begin_); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + begin_); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }

  bool guards_intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kPattern; };
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + count_ * sizeof(T));
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_),
                       untouched) &&
           std::all_of(end, bytes_.end(), untouched);
  }

 private:
  static constexpr unsigned char kPattern = 0xa5;
  std::vector<unsigned char> bytes_;
  std::size_t count_;
  std::size_t begin_ = 0;
};

// The position of the first element whose bits differ, or count.
template <class T>
std::size_t first_difference(const T* left, const T* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(left + i, right + i, sizeof(T)) != 0) {
      return i;
    }
  }
  return count;
}

}  // namespace lockstep::test
