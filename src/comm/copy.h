// Copies between buffers that are equal or apart.
#pragma once

#include <cstdint>
#include <cstring>

namespace lockstep::comm {

// `to` may equal `from`, and either may be null when there is nothing to copy.
inline void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace lockstep::comm
