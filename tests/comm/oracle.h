// The naive reduction that the collectives are held to, bit for bit: one element at a time, in the
// documented tree, in the documented type, rounded once.
#pragma once

#include "base/float16.h"
#include "base/range.h"
#include "lockstep/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace lockstep::test {

template <class T>
constexpr bool is_half = std::is_same_v<T, Bfloat16> || std::is_same_v<T, Float16>;

// The type that elements add in.
template <class T>
using Wide = std::conditional_t<is_half<T>, float, T>;

template <class T>
Wide<T> widen(T value) {
  if constexpr (is_half<T>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T>
T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return value;
  }
}

// What rank r holds at element i: floats of both signs and many magnitudes, so that another order
// of addition shows; integers that do not overflow.
template <class T>
T value_of(int rank, std::int64_t i, std::uint64_t salt) {
  std::uint64_t hash = (salt * 1'000'003 + static_cast<std::uint64_t>(rank)) * 0x9e3779b97f4a7c15 +
                       static_cast<std::uint64_t>(i) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 30)) * 0x94d049bb133111eb;
  hash ^= hash >> 31;
  if constexpr (std::is_integral_v<T>) {
    const auto small = static_cast<std::int64_t>(hash % 30);
    return static_cast<T>(std::is_signed_v<T> ? (small - 15) * 1'000 : small);
  } else {
    const double fraction = 1.0 + static_cast<double>(hash >> 40) * 0x1p-24;
    const int exponent = static_cast<int>((hash >> 8) % 16) - 8;
    const double sign = (hash & 1) != 0 ? -1.0 : 1.0;
    return narrow<T>(static_cast<Wide<T>>(sign * std::ldexp(fraction, exponent)));
  }
}

template <class W>
W combine(ReduceOp op, W left, W right) {
  switch (op) {
    case ReduceOp::max:
      return std::max(left, right);
    case ReduceOp::min:
      return std::min(left, right);
    default:
      return static_cast<W>(left + right);
  }
}

// op over leaves [lo, hi) in the tree.
template <class T>
Wide<T> tree(ReduceOp op, std::span<const T> leaves, std::size_t lo, std::size_t hi) {
  if (hi - lo == 1) {
    return widen(leaves[lo]);
  }
  const std::size_t mid =
      lo + static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(hi - lo)));
  return combine(op, tree(op, leaves, lo, mid), tree(op, leaves, mid, hi));
}

// op over all leaves one after the other, as a ring adds them: `first`, the next ones, and around.
template <class T>
Wide<T> chain(ReduceOp op, std::span<const T> leaves, std::size_t first) {
  Wide<T> value = widen(leaves[first % leaves.size()]);
  for (std::size_t step = 1; step < leaves.size(); ++step) {
    value = combine(op, value, widen(leaves[(first + step) % leaves.size()]));
  }
  return value;
}

// The scaling and the one rounding of what was added.
template <class T>
T finished(Wide<T> value, std::size_t ranks, const ReduceOptions& options) {
  if constexpr (!std::is_integral_v<T>) {
    if (options.op == ReduceOp::mean) {
      value = value * static_cast<Wide<T>>(1.0 / static_cast<double>(ranks));
    }
    if (options.scale) {
      value = value * static_cast<Wide<T>>(*options.scale);
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (options.round_to == Dtype::bf16) {
      value = to_float(to_bfloat16(value));
    } else if (options.round_to == Dtype::f16) {
      value = to_float(to_float16(value));
    }
  }
  return narrow<T>(value);
}

template <class T>
T reduced(std::span<const T> leaves, const ReduceOptions& options) {
  return finished<T>(tree(options.op, leaves, 0, leaves.size()), leaves.size(), options);
}

// What each of `ranks` ranks holds at element i.
template <class T>
struct Leaves {
  Leaves(std::int64_t i, int ranks, std::uint64_t salt) : count(static_cast<std::size_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) {
      values.at(static_cast<std::size_t>(r)) = value_of<T>(r, i, salt);
    }
  }
  std::span<const T> span() const { return {values.data(), count}; }

  std::array<T, 16> values{};
  std::size_t count;
};

// The reduction of element i over `ranks` ranks that hold value_of().
template <class T>
T reduced_at(std::int64_t i, int ranks, std::uint64_t salt, const ReduceOptions& options) {
  return reduced<T>(Leaves<T>(i, ranks, salt).span(), options);
}

// The same by a ring whose sum ends on rank `last`.
template <class T>
T chained_at(std::int64_t i, int ranks, std::uint64_t salt, int last,
             const ReduceOptions& options) {
  const Leaves<T> leaves(i, ranks, salt);
  return finished<T>(chain(options.op, leaves.span(), static_cast<std::size_t>(last) + 1),
                     leaves.count, options);
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Sizes around every boundary: of ranks, of granules, and of `boundaries` (elements).
inline std::vector<std::int64_t> sizes_for(int ranks, std::vector<std::int64_t> boundaries = {}) {
  std::vector<std::int64_t> sizes{0, 1, ranks - 1, ranks, ranks + 1, 63, 64, 65, 1000};
  for (const std::int64_t boundary : boundaries) {
    sizes.insert(sizes.end(), {boundary - 1, boundary, boundary + 1});
  }
  return sizes;
}

// Calls function.template operator()<T>() for every element type.
template <class Function>
void for_each_dtype(Function function) {
  function.template operator()<float>();
  function.template operator()<double>();
  function.template operator()<Bfloat16>();
  function.template operator()<Float16>();
  function.template operator()<std::int32_t>();
  function.template operator()<std::int64_t>();
  function.template operator()<std::uint8_t>();
}

// The options a reduction of this type is tried with.
template <class T>
std::vector<ReduceOptions> reductions_of() {
  std::vector<ReduceOptions> all{
      {.op = ReduceOp::sum}, {.op = ReduceOp::max}, {.op = ReduceOp::min}};
  if constexpr (!std::is_integral_v<T>) {
    all.push_back({.op = ReduceOp::mean});
    all.push_back({.op = ReduceOp::sum, .scale = 0.3});
  }
  if constexpr (std::is_same_v<T, float>) {
    all.push_back({.op = ReduceOp::sum, .scale = 0.3, .round_to = Dtype::bf16});
    all.push_back({.op = ReduceOp::mean, .round_to = Dtype::f16});
  }
  return all;
}

}  // namespace lockstep::test
