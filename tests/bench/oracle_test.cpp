#include "bench/collectives/oracle.h"

#include "base/float16.h"
#include "base/range.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

using Bytes = std::vector<std::byte>;

Bytes filled(std::int64_t bytes, Dtype dtype, int rank) {
  Bytes memory(static_cast<std::size_t>(bytes));
  fill(memory, dtype, rank);
  return memory;
}

float read_f32(const Bytes& memory, std::size_t element) {
  float value;
  std::memcpy(&value, memory.data() + 4 * element, sizeof value);
  return value;
}

void write_f32(Bytes& memory, std::size_t element, float value) {
  std::memcpy(memory.data() + 4 * element, &value, sizeof value);
}

// The mean over `ranks` of f32 elements, added one pair after the other as the tree says for up to
// three ranks.
Bytes mean_of(std::int64_t elements, int ranks) {
  Bytes result = filled(4 * elements, Dtype::f32, 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) {
    float sum = read_f32(result, i);
    for (int rank = 1; rank < ranks; ++rank) {
      sum += read_f32(filled(4 * elements, Dtype::f32, rank), i);
    }
    write_f32(result, i, sum * (1.0f / static_cast<float>(ranks)));
  }
  return result;
}

TEST(Oracle, ranks_and_elements_differ) {
  const Bytes zero = filled(64, Dtype::f32, 0);
  EXPECT_NE(zero, filled(64, Dtype::f32, 1));
  EXPECT_EQ(zero, filled(64, Dtype::f32, 0));
  EXPECT_NE(read_f32(zero, 0), read_f32(zero, 1));
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_LE(std::abs(read_f32(zero, i)), 1.0f);
  }
}

TEST(Oracle, takes_the_mean_of_two_and_of_three) {
  for (const int ranks : {2, 3}) {
    const Expectation expected{Collective::all_reduce, Dtype::f32, ranks};
    EXPECT_NO_THROW(verify(mean_of(37, ranks), 0, expected)) << ranks;
  }
}

// Block 0 of three is added as 1, 2, 0, where the tree adds 0, 1, 2.
TEST(Oracle, knows_the_rings_order) {
  Bytes tree = mean_of(3 * 64, 3);
  Bytes ring = tree;
  for (std::size_t i = 0; i < 3 * 64; ++i) {
    const auto value = [&](std::size_t step) {
      const auto rank = static_cast<int>((i / 64 + step) % 3);
      return read_f32(filled(4 * 3 * 64, Dtype::f32, rank), i);
    };
    write_f32(ring, i, ((value(1) + value(2)) + value(3)) * (1.0f / 3.0f));
  }
  ASSERT_NE(ring, tree);
  Expectation expected{Collective::all_reduce, Dtype::f32, 3};
  EXPECT_THROW(verify(ring, 0, expected), Error);
  expected.algorithm = Algorithm::ring;
  EXPECT_NO_THROW(verify(ring, 0, expected));
  EXPECT_THROW(verify(tree, 0, expected), Error);
}

TEST(Oracle, sees_a_single_bit) {
  Bytes result = mean_of(37, 2);
  result[4 * 36] ^= std::byte{1};
  try {
    verify(result, 1, {Collective::all_reduce, Dtype::f32, 2});
    FAIL() << "the flipped bit passed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("element 36 on rank 1"), std::string::npos)
        << error.what();
  }
}

TEST(Oracle, reduce_scatter_looks_at_the_own_block_only) {
  Bytes result = filled(4 * 10, Dtype::f32, 1);
  const Bytes mean = mean_of(10, 2);
  std::memcpy(result.data() + 4 * 5, mean.data() + 4 * 5, 4 * 5);  // block 1 of two
  const Expectation expected{Collective::reduce_scatter, Dtype::f32, 2};
  EXPECT_NO_THROW(verify(result, 1, expected));
  EXPECT_THROW(verify(result, 0, expected), Error);
}

TEST(Oracle, all_gather_holds_every_owners_block) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const std::int64_t element = size_of(dtype);
    Bytes result = filled(7 * element, dtype, 0);
    const Expectation expected{Collective::all_gather, dtype, 2};
    EXPECT_THROW(verify(result, 0, expected), Error);
    const Bytes other = filled(7 * element, dtype, 1);
    const auto begin = static_cast<std::size_t>(4 * element);  // blocks of 4 and 3
    std::memcpy(result.data() + begin, other.data() + begin, result.size() - begin);
    EXPECT_NO_THROW(verify(result, 0, expected));
  }
}

TEST(Oracle, bf16_is_added_in_fp32_and_rounded_once) {
  const auto read = [](const Bytes& memory) {
    Bfloat16 value;
    std::memcpy(&value, memory.data(), sizeof value);
    return to_float(value);
  };
  float sum = 0;
  for (int rank = 0; rank < 3; ++rank) {
    sum += read(filled(2, Dtype::bf16, rank));
  }
  const Bfloat16 mean = to_bfloat16(sum * (1.0f / 3.0f));
  Bytes result(2);
  std::memcpy(result.data(), &mean, 2);
  EXPECT_NO_THROW(verify(result, 2, {Collective::all_reduce, Dtype::bf16, 3}));
}

}  // namespace
}  // namespace lockstep::bench
