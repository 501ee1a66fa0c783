#include "bench/collectives/oracle.h"

#include "base/float16.h"
#include "base/range.h"
#include "lockstep/error.h"

#include <bit>
#include <cstring>
#include <string>

namespace lockstep::bench {
namespace {

// 24 bits of a splitmix64 step, of eight magnitudes, so that another order of addition rounds
// otherwise: every value is exact in fp32.
float drawn(int rank, std::int64_t element) {
  std::uint64_t x = static_cast<std::uint64_t>(element) * 0x9e3779b97f4a7c15u +
                    static_cast<std::uint64_t>(rank + 1) * 0xd1b54a32d192ed03u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  const auto magnitude = static_cast<float>(1 << (x & 7));
  return (static_cast<float>(x >> 40) * 0x1p-23f - 1.0f) / magnitude;
}

std::uint32_t bits_of(float value, Dtype dtype) {
  return dtype == Dtype::f32 ? std::bit_cast<std::uint32_t>(value) : to_bfloat16(value).bits;
}

float input(int rank, std::int64_t element, Dtype dtype) {
  const float value = drawn(rank, element);
  return dtype == Dtype::f32 ? value : to_float(to_bfloat16(value));
}

float tree_sum(Range ranks, std::int64_t element, Dtype dtype) {
  if (ranks.size() == 1) {
    return input(static_cast<int>(ranks.begin), element, dtype);
  }
  const std::int64_t middle = ranks.begin + tree_split(ranks.size());
  return tree_sum({ranks.begin, middle}, element, dtype) +
         tree_sum({middle, ranks.end}, element, dtype);
}

// From behind the rank that it ends on, around the ring.
float ring_sum(int last, std::int64_t element, const Expectation& expected) {
  float sum = 0;
  for (int step = 1; step <= expected.ranks; ++step) {
    const float value = input((last + step) % expected.ranks, element, expected.dtype);
    sum = step == 1 ? value : sum + value;
  }
  return sum;
}

// Whose block of all elements an element is; all_reduce cuts no granule.
int owner_of(std::int64_t element, std::int64_t count, const Expectation& expected) {
  const std::int64_t granule = expected.collective == Collective::all_reduce ? kGranule : 1;
  return static_cast<int>(element / block_of(count, expected.ranks, 0, granule).size());
}

float sum_of(std::int64_t element, std::int64_t count, const Expectation& expected) {
  return expected.algorithm == Algorithm::ring
             ? ring_sum(owner_of(element, count, expected), element, expected)
             : tree_sum({0, expected.ranks}, element, expected.dtype);
}

std::uint32_t load(std::span<const std::byte> bytes, std::int64_t element, Dtype dtype) {
  std::uint32_t bits = 0;  // little-endian, as everything here
  const auto size = static_cast<std::size_t>(size_of(dtype));
  std::memcpy(&bits, bytes.data() + static_cast<std::size_t>(element) * size, size);
  return bits;
}

std::string hexadecimal(std::uint32_t bits) {
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[(bits >> shift) & 0xfu];
  }
  return text;
}

void require_range(std::span<const std::byte> bytes, Range range, int rank,
                   const Expectation& expected, int owner) {
  const bool reduces = expected.collective != Collective::all_gather;
  const auto count = static_cast<std::int64_t>(bytes.size()) / size_of(expected.dtype);
  const float factor = 1.0f / static_cast<float>(expected.ranks);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const float value =
        reduces ? sum_of(i, count, expected) * factor : input(owner, i, expected.dtype);
    const std::uint32_t wanted = bits_of(value, expected.dtype);
    const std::uint32_t got = load(bytes, i, expected.dtype);
    if (got != wanted) {
      throw Error(name_of(expected.collective) + " of " + std::to_string(bytes.size()) +
                  " bytes: element " + std::to_string(i) + " on rank " + std::to_string(rank) +
                  ": expected bits " + hexadecimal(wanted) + ", got " + hexadecimal(got));
    }
  }
}

}  // namespace

void fill(std::span<std::byte> bytes, Dtype dtype, int rank) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  const auto count = static_cast<std::int64_t>(bytes.size() / size);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = bits_of(drawn(rank, i), dtype);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * size, &bits, size);
  }
}

void verify(std::span<const std::byte> bytes, int rank, const Expectation& expected) {
  const auto count = static_cast<std::int64_t>(bytes.size()) / size_of(expected.dtype);
  switch (expected.collective) {
    case Collective::all_reduce:
      require_range(bytes, {0, count}, rank, expected, rank);
      return;
    case Collective::reduce_scatter:
      require_range(bytes, block_of(count, expected.ranks, rank), rank, expected, rank);
      return;
    case Collective::all_gather:
      for (int owner = 0; owner < expected.ranks; ++owner) {
        require_range(bytes, block_of(count, expected.ranks, owner), rank, expected, owner);
      }
      return;
  }
}

}  // namespace lockstep::bench
