#include "comm/direct.h"

#include "comm/oracle.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lockstep::comm {
namespace {

using test::on_ranks;
using test::same_bits;

constexpr std::int64_t kOffset = 192;  // of the span under test, between guard bytes
constexpr std::int64_t kGuardBytes = 64;
constexpr unsigned char kPattern = 0x5a;

class Direct : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Direct, ::testing::Values(1, 2, 3, 4, 7));

template <class T>
struct Case {
  Group& group;
  SymmetricMemory& memory;
  std::int64_t count;

  // The span, filled with this rank's values and guards around it.
  SymmetricSpan fill(std::uint64_t salt) const {
    const SymmetricSpan span = memory.span(kOffset, count, DtypeOf<T>::value);
    auto* bytes = static_cast<unsigned char*>(span.data());
    std::memset(bytes - kGuardBytes, kPattern,
                static_cast<std::size_t>(span.bytes() + 2 * kGuardBytes));
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<T*>(span.data())[i] = test::value_of<T>(group.rank(), i, salt);
    }
    return span;
  }

  template <class Expected>
  void expect(const char* what, const SymmetricSpan& span, Expected expected) const {
    const auto* values = static_cast<const T*>(span.data());
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(same_bits(values[i], expected(i)))
          << what << " " << name_of(span.dtype) << " element " << i << " of " << count << ", rank "
          << group.rank() << " of " << group.size();
    }
    const auto* bytes = static_cast<const unsigned char*>(span.data());
    for (std::int64_t i = 0; i < kGuardBytes; ++i) {
      ASSERT_EQ(bytes[-1 - i], kPattern) << what << " wrote in front of its " << count;
      ASSERT_EQ(bytes[span.bytes() + i], kPattern) << what << " wrote behind its " << count;
    }
  }

  void all_reduce(const ReduceOptions& options) const {
    const SymmetricSpan span = fill(5);
    group.all_reduce(span, options).wait();
    expect("all_reduce", span,
           [&](std::int64_t i) { return test::reduced_at<T>(i, group.size(), 5, options); });
  }

  void reduce_scatter(const ReduceOptions& options) const {
    const SymmetricSpan span = fill(6);
    const Range block = block_of(count, group.size(), group.rank());
    std::vector<T> output(static_cast<std::size_t>(block.size()));
    group.reduce_scatter(span, Span(std::span(output)), options).wait();
    const auto reduced = [&](std::int64_t i) {
      return test::reduced_at<T>(i, group.size(), 6, options);
    };
    const auto untouched = [&](std::int64_t i) { return test::value_of<T>(group.rank(), i, 6); };
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      ASSERT_TRUE(same_bits(output[static_cast<std::size_t>(i - block.begin)], reduced(i))) << i;
    }
    expect("reduce_scatter input", span, untouched);
    group.reduce_scatter(span, span.subspan(block.begin, block.end).local(), options).wait();
    expect("reduce_scatter in place", span, [&](std::int64_t i) {
      return block.begin <= i && i < block.end ? reduced(i) : untouched(i);
    });
  }

  void all_gather() const {
    const SymmetricSpan span = fill(7);
    group.all_gather(span).wait();
    expect("all_gather", span, [&](std::int64_t i) {
      const std::int64_t block = block_of(count, group.size(), 0).size();
      return test::value_of<T>(static_cast<int>(i / block), i, 7);
    });
  }

  void broadcast(int root) const {
    const SymmetricSpan span = fill(8);
    group.broadcast(span, root).wait();
    expect("broadcast", span, [&](std::int64_t i) { return test::value_of<T>(root, i, 8); });
  }

  void everything() const {
    for (const ReduceOptions& options : test::reductions_of<T>()) {
      all_reduce(options);
      reduce_scatter(options);
    }
    all_gather();
    broadcast(0);
    broadcast(group.size() - 1);
  }
};

TEST_P(Direct, every_collective_type_and_size_gives_the_trees_bits) {
  on_ranks(GetParam(), [](Group& group) {
    SymmetricMemory memory = group.allocate_symmetric(64 << 10, "cases");
    test::for_each_dtype([&]<class T>() {
      for (const std::int64_t count : test::sizes_for(group.size())) {
        Case<T>{group, memory, count}.everything();
      }
    });
  });
}

TEST_P(Direct, chunks_meet_without_gap_or_overlap) {
  on_ranks(GetParam(), [](Group& group) {
    const std::int64_t chunk = DirectOperation::kChunkBytes / 4;
    SymmetricMemory memory = group.allocate_symmetric(4 * 3 * chunk * group.size(), "cases");
    for (const std::int64_t per_rank : {chunk - 1, chunk, chunk + 1, 2 * chunk + 77}) {
      const Case<float> test{group, memory, per_rank * group.size()};
      test.all_reduce({.op = ReduceOp::mean});
      test.reduce_scatter({});
      test.all_gather();
      test.broadcast(0);
    }
  });
}

TEST_P(Direct, parts_of_several_types_are_one_collective) {
  on_ranks(GetParam(), [](Group& group) {
    SymmetricMemory memory = group.allocate_symmetric(3 * 4096, "parts");
    const auto f32 = memory.span(0, 1000, Dtype::f32);
    const auto bf16 = memory.span(4096, 65, Dtype::bf16);
    const auto rounded = memory.span(8192, 3, Dtype::f32);
    for (std::int64_t i = 0; i < 1000; ++i) {
      static_cast<float*>(f32.data())[i] = test::value_of<float>(group.rank(), i, 1);
    }
    for (std::int64_t i = 0; i < 65; ++i) {
      static_cast<Bfloat16*>(bf16.data())[i] = test::value_of<Bfloat16>(group.rank(), i, 2);
    }
    for (std::int64_t i = 0; i < 3; ++i) {
      static_cast<float*>(rounded.data())[i] = test::value_of<float>(group.rank(), i, 3);
    }
    const std::array<ReducePart, 3> parts{ReducePart{f32, {}}, ReducePart{bf16, {}},
                                          ReducePart{rounded, Dtype::bf16}};
    group.all_reduce(parts, {.op = ReduceOp::mean, .name = "parts"}).wait();
    const int ranks = group.size();
    for (std::int64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(same_bits(static_cast<float*>(f32.data())[i],
                            test::reduced_at<float>(i, ranks, 1, {.op = ReduceOp::mean})));
    }
    for (std::int64_t i = 0; i < 65; ++i) {
      ASSERT_TRUE(same_bits(static_cast<Bfloat16*>(bf16.data())[i],
                            test::reduced_at<Bfloat16>(i, ranks, 2, {.op = ReduceOp::mean})));
    }
    for (std::int64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(same_bits(
          static_cast<float*>(rounded.data())[i],
          test::reduced_at<float>(i, ranks, 3, {.op = ReduceOp::mean, .round_to = Dtype::bf16})));
    }
    EXPECT_EQ(group.traffic().collectives, 1);
  });
}

// A coalesced reduce_scatter: in place, into fp32 sums, and shown only.
TEST_P(Direct, scattered_parts_end_where_they_are_asked_for) {
  on_ranks(GetParam(), [](Group& group) {
    const int ranks = group.size();
    const std::int64_t count = ranks * (DirectOperation::kChunkBytes / 2) + 1000;
    SymmetricMemory memory = group.allocate_symmetric(3 * 8 * count, "parts");
    const auto in_place = memory.span(0, count, Dtype::f32);
    const auto widened = memory.span(round_up(4 * count, 64), count, Dtype::bf16);
    const auto shown = memory.span(round_up(8 * count, 64), count, Dtype::bf16);
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<float*>(in_place.data())[i] = test::value_of<float>(group.rank(), i, 1);
      static_cast<Bfloat16*>(widened.data())[i] = test::value_of<Bfloat16>(group.rank(), i, 2);
      static_cast<Bfloat16*>(shown.data())[i] = test::value_of<Bfloat16>(group.rank(), i, 3);
    }
    const Range block = block_of(count, ranks, group.rank());
    std::vector<float> sums(static_cast<std::size_t>(block.size()));
    std::vector<float> seen(static_cast<std::size_t>(block.size()));
    ReduceOptions options;
    options.on_reduced = [&](std::size_t part, std::int64_t begin, std::int64_t n, const void* at) {
      if (part == 2) {
        std::copy_n(static_cast<const float*>(at), n, seen.data() + (begin - block.begin));
      }
    };
    const std::array<ScatterPart, 3> parts{
        ScatterPart{in_place, in_place.subspan(block.begin, block.end).local(), Dtype::bf16},
        ScatterPart{widened, Span(std::span(sums)), {}},
        ScatterPart{shown, Span(nullptr, block.size(), Dtype::f32), {}}};
    group.reduce_scatter(parts, options).wait();

    const auto sum_of = [&](std::int64_t i, std::uint64_t salt) {
      std::vector<Bfloat16> leaves;
      for (int r = 0; r < ranks; ++r) {
        leaves.push_back(test::value_of<Bfloat16>(r, i, salt));
      }
      return test::tree(ReduceOp::sum, std::span<const Bfloat16>(leaves), 0, leaves.size());
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const bool own = block.begin <= i && i < block.end;
      const float rounded = test::reduced_at<float>(i, ranks, 1, {.round_to = Dtype::bf16});
      ASSERT_TRUE(same_bits(static_cast<float*>(in_place.data())[i],
                            own ? rounded : test::value_of<float>(group.rank(), i, 1)));
      ASSERT_TRUE(same_bits(static_cast<Bfloat16*>(shown.data())[i],
                            test::value_of<Bfloat16>(group.rank(), i, 3)));
      if (own) {
        const auto at = static_cast<std::size_t>(i - block.begin);
        ASSERT_TRUE(same_bits(sums[at], sum_of(i, 2)));
        ASSERT_TRUE(same_bits(seen[at], sum_of(i, 3)));
      }
    }
    EXPECT_EQ(group.traffic().collectives, 1);
    EXPECT_EQ(group.traffic().received, (ranks - 1) * block.size() * (4 + 2 + 2));
    EXPECT_EQ(group.traffic().sent, 0);
  });
}

// Each element is shown to its owner once, with its final value.
TEST_P(Direct, on_reduced_covers_the_own_block_with_final_values) {
  on_ranks(GetParam(), [](Group& group) {
    const std::int64_t count = group.size() * (DirectOperation::kChunkBytes / 4) + 1000;
    SymmetricMemory memory = group.allocate_symmetric(count * 4, "shown");
    const auto span = memory.span(0, count, Dtype::f32);
    std::fill_n(static_cast<float*>(span.data()), count, static_cast<float>(group.rank() + 1));
    const float sum = static_cast<float>(group.size() * (group.size() + 1) / 2);
    const Range block = block_of(count, group.size(), group.rank(), kGranule);
    std::int64_t next = block.begin;
    ReduceOptions options;
    options.on_reduced = [&](std::size_t part, std::int64_t begin, std::int64_t shown,
                             const void* values) {
      EXPECT_EQ(part, 0u);
      EXPECT_EQ(begin, next);
      EXPECT_GT(shown, 0);
      EXPECT_EQ(values, static_cast<float*>(span.data()) + begin);
      EXPECT_EQ(static_cast<const float*>(values)[0], sum);
      EXPECT_EQ(static_cast<const float*>(values)[shown - 1], sum);
      next = begin + shown;
    };
    group.all_reduce(span, options).wait();
    EXPECT_EQ(next, block.end);
  });
}

// design: (P-1)/P·X each, exactly, from the blocks.
TEST(DirectTraffic, is_what_the_formula_says) {
  on_ranks(4, [](Group& group) {
    constexpr std::int64_t kCount = 1000;
    SymmetricMemory memory = group.allocate_symmetric(kCount * 4, "counted");
    const auto span = memory.span(0, kCount, Dtype::f32);
    EXPECT_EQ(group.traffic().received, 0);
    group.all_reduce(span).wait();
    const std::int64_t granular = block_of(kCount, 4, group.rank(), kGranule).size() * 4;
    EXPECT_EQ(group.traffic().received, 3 * granular);
    EXPECT_EQ(group.traffic().sent, 3 * granular);
    std::vector<float> block(250);
    group.reduce_scatter(span, Span(std::span(block))).wait();
    EXPECT_EQ(group.traffic().received, 3 * granular + 3 * 1000);
    EXPECT_EQ(group.traffic().sent, 3 * granular);
    group.all_gather(span).wait();
    EXPECT_EQ(group.traffic().sent, 3 * granular + 3 * 1000);
    group.broadcast(span, 2).wait();
    EXPECT_EQ(group.traffic().received,
              3 * granular + 3 * 1000 + (group.rank() == 2 ? 0 : 4 * kCount));
    group.barrier();
    EXPECT_EQ(group.traffic().collectives, 4);
  });
}

}  // namespace
}  // namespace lockstep::comm
