// Moments of a step at which time and memory are looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep::train {

// Of each micro-batch the first three; after the last one's backward all hooks have fired, and the
// exchange of the gradients has not ended. Once a step after_update.
enum class Moment : std::uint8_t { before_forward, after_forward, after_backward, after_update };
inline constexpr std::size_t kMoments = 4;

using OnMoment = std::function<void(Moment)>;

}  // namespace lockstep::train
