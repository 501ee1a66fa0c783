// Copies between buffers that are equal or apart.
#pragma once

#include <cstdint>

namespace lockstep::comm {

// `to` may equal `from`, and either may be null when there is nothing to copy. With reduce() it is
// all that moves payload; out of line, so that tests can count at its arguments.
void copy_bytes(void* to, const void* from, std::int64_t bytes);

}  // namespace lockstep::comm
