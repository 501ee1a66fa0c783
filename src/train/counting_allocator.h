// Counts what LibTorch's CPU allocator has given out: how activations are measured.
#pragma once

#include <cstdint>

namespace lockstep::train {

// Wraps LibTorch's CPU allocator for the rest of the process (a second call changes nothing).
// Memory handed out before is not counted, and not subtracted when it is freed. Call before other
// threads allocate tensors.
void count_allocations();

// Bytes of tensors allocated since count_allocations() and still alive, as malloc rounds them.
std::int64_t live_tensor_bytes();

// The most that were alive at once since the last call (at first since count_allocations()); a
// little off where other threads allocate during the call.
std::int64_t take_peak_tensor_bytes();

}  // namespace lockstep::train
