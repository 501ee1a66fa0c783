#include "comm/copy.h"

#include <cstddef>
#include <cstring>

namespace lockstep::comm {

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace lockstep::comm
