#include "comm/combine.h"

#include "comm/oracle.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using test::same_bits;
using test::value_of;

constexpr std::int64_t kCount = 300;  // more than a block of the kernels, and a tail

template <class T>
std::vector<T> leaf(int rank) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < kCount; ++i) {
    values.push_back(value_of<T>(rank, i, 1));
  }
  return values;
}

template <class T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

template <class T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

TEST(Combine, partial_sums_of_halves_are_fp32_and_all_else_keeps_its_dtype) {
  EXPECT_EQ(partial_dtype(Dtype::bf16, ReduceOp::sum), Dtype::f32);
  EXPECT_EQ(partial_dtype(Dtype::f16, ReduceOp::sum), Dtype::f32);
  EXPECT_EQ(partial_dtype(Dtype::bf16, ReduceOp::max), Dtype::bf16);
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::u8}) {
    EXPECT_EQ(partial_dtype(dtype, ReduceOp::sum), dtype);
  }
}

// ((0+1)+2) in two steps, the second of a partial sum and a leaf, against the tree in one.
template <class T>
void expect_two_steps_to_be_one(const ReduceOptions& options) {
  using Partial = std::conditional_t<test::is_half<T>, float, T>;
  Reduction reduction{options.op, options.scale, options.round_to};
  Combiner combiner(DtypeOf<T>::value, DtypeOf<T>::value, reduction);
  const auto zero = leaf<T>(0), one = leaf<T>(1), two = leaf<T>(2);
  std::vector<T> result(kCount);
  if (options.op == ReduceOp::sum) {
    std::vector<Partial> sum(kCount);
    combiner.combine(std::array<Combiner::Operand, 2>{{{bytes_of(zero), Form::leaf},
                                                       {bytes_of(one), Form::leaf}}},
                     bytes_of(sum), Form::partial, kCount);
    combiner.combine(std::array<Combiner::Operand, 2>{{{bytes_of(sum), Form::partial},
                                                       {bytes_of(two), Form::leaf}}},
                     bytes_of(result), Form::result, kCount);
  } else {
    std::vector<T> best(kCount);
    combiner.combine(std::array<Combiner::Operand, 2>{{{bytes_of(zero), Form::leaf},
                                                       {bytes_of(one), Form::leaf}}},
                     bytes_of(best), Form::partial, kCount);
    combiner.combine(std::array<Combiner::Operand, 2>{{{bytes_of(best), Form::partial},
                                                       {bytes_of(two), Form::leaf}}},
                     bytes_of(result), Form::result, kCount);
  }
  for (std::int64_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(
        same_bits(result[static_cast<std::size_t>(i)], test::reduced_at<T>(i, 3, 1, options)))
        << name_of(DtypeOf<T>::value) << " at " << i;
  }
}

TEST(Combine, in_steps_gives_the_bits_of_the_tree_in_one) {
  test::for_each_dtype([]<class T>() {
    for (const ReduceOptions& options : test::reductions_of<T>()) {
      if (options.op != ReduceOp::mean) {
        expect_two_steps_to_be_one<T>(options);
      }
    }
  });
}

TEST(Combine, results_may_keep_the_sums_of_halves) {
  Combiner combiner(Dtype::bf16, Dtype::f32, {.op = ReduceOp::sum, .scale = 0.5});
  const auto zero = leaf<Bfloat16>(0), one = leaf<Bfloat16>(1);
  std::vector<float> result(kCount), partial(kCount), again(kCount);
  const std::array<Combiner::Operand, 2> leaves{
      {{bytes_of(zero), Form::leaf}, {bytes_of(one), Form::leaf}}};
  combiner.combine(leaves, bytes_of(result), Form::result, kCount);
  combiner.combine(leaves, bytes_of(partial), Form::partial, kCount);
  combiner.combine(std::array<Combiner::Operand, 1>{{{bytes_of(partial), Form::partial}}},
                   bytes_of(again), Form::result, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const float sum = to_float(zero[i]) + to_float(one[i]);
    ASSERT_TRUE(same_bits(partial[i], sum));
    ASSERT_TRUE(same_bits(result[i], sum * 0.5f));
    ASSERT_TRUE(same_bits(again[i], sum * 0.5f));
  }
}

TEST(Combine, a_partial_sum_may_grow_in_its_place) {
  Combiner combiner(Dtype::f32, Dtype::f32, {});
  auto sum = leaf<float>(0);
  const auto one = leaf<float>(1);
  combiner.combine(std::array<Combiner::Operand, 2>{{{bytes_of(sum), Form::partial},
                                                     {bytes_of(one), Form::leaf}}},
                   bytes_of(sum), Form::partial, kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(sum[static_cast<std::size_t>(i)], test::reduced_at<float>(i, 2, 1, {}));
  }
}

}  // namespace
}  // namespace lockstep::comm
