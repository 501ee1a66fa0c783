// How large a window is through which gradients travel that rest in shards. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

// Small against any model that is worth sharding; large enough that ranks need not meet often.
inline constexpr std::int64_t kLargestGradientWindow = 2 << 20;

// `largest_bytes`: of the largest flat parameter's gradient.
constexpr std::int64_t gradient_window_bytes(std::int64_t largest_bytes) {
  return std::min(kLargestGradientWindow, largest_bytes);
}

}  // namespace lockstep
