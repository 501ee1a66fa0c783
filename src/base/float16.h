// Scalar conversions of the 16-bit floats by integer arithmetic: round to nearest even, denormals
// kept, NaN stays NaN. The SIMD kernels must give these bits; tests hold them to it.
#pragma once

#include "lockstep/dtype.h"

#include <bit>
#include <cstdint>

namespace lockstep {

constexpr float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

constexpr Bfloat16 to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x0040u)};  // quiet, so that it stays NaN
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

constexpr float to_float(Float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude >= 0x0400u) {  // normal: rebias the exponent
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
  const float scaled = static_cast<float>(magnitude) * 0x1p-24f;  // exact: at most 10 bits
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

constexpr Float16 to_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  }
  if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  }
  if (magnitude >= 0x38800000u) {  // normal in f16
    const std::uint32_t rebiased = magnitude - 0x38000000u;
    return {
        static_cast<std::uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13))};
  }
  if (magnitude < 0x33000000u) {  // below half of the smallest denormal
    return {sign};
  }
  // Denormal in f16: shift the significand with its hidden bit, nearest even on what falls off.
  const std::uint32_t shift = 126u - (magnitude >> 23);
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t rest = significand & ((1u << shift) - 1u);
  const std::uint32_t half = 1u << (shift - 1u);
  const std::uint32_t up = (rest > half || (rest == half && (kept & 1u) != 0)) ? 1u : 0u;
  return {static_cast<std::uint16_t>(sign | (kept + up))};
}

}  // namespace lockstep
