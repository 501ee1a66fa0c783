#include "comm/windowed.h"

#include "base/guarded.h"
#include "comm/oracle.h"
#include "comm/plain_checks.h"
#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <vector>

namespace lockstep::comm {
namespace {

using test::Guarded;
using test::on_ranks;
using test::require_values;
using test::span_of;

// A window holds one granule of f64 for each of 7 ranks: small, so that most sizes take several.
constexpr std::int64_t kWindowBytes = 7 * kGranule * 8;

class Windowed : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Windowed, ::testing::Values(1, 2, 3, 4, 7));

// This rank's input of `count` elements, of which `filled` counts how often each was asked for.
template <class T>
WindowedPart part_of(const Group& group, std::vector<int>& filled, std::uint64_t salt,
                     Span output) {
  return {static_cast<std::int64_t>(filled.size()), DtypeOf<T>::value,
          [rank = group.rank(), &filled, salt](Range elements, void* to) {
            for (std::int64_t i = elements.begin; i < elements.end; ++i) {
              static_cast<T*>(to)[i - elements.begin] = test::value_of<T>(rank, i, salt);
              ++filled.at(static_cast<std::size_t>(i));
            }
          },
          output};
}

template <class T>
void check(Group& group, const SymmetricMemory& windows, std::int64_t count,
           const ReduceOptions& options) {
  const Range block = block_of(count, group.size(), group.rank());
  std::vector<int> filled(static_cast<std::size_t>(count));
  Guarded<T> output(static_cast<std::size_t>(block.size()), 1);
  reduce_scatter_through(windows, {part_of<T>(group, filled, 3, span_of(output))}, options).wait();
  require_values(test::case_name<T>("windowed", group, count), output, block.begin,
                 [&](std::int64_t i) { return test::reduced_at<T>(i, group.size(), 3, options); });
  ASSERT_EQ(filled, std::vector<int>(filled.size(), 1));
}

TEST_P(Windowed, every_type_and_size_gives_the_trees_bits) {
  on_ranks(GetParam(), [](Group& group) {
    const SymmetricMemory windows = group.allocate_symmetric(kWindows * kWindowBytes, "windows");
    test::for_each_dtype([&]<class T>() {
      const auto room = kWindowBytes / static_cast<std::int64_t>(sizeof(T));
      for (const std::int64_t count : test::sizes_for(group.size(), {room, 2 * room, 5 * room})) {
        check<T>(group, windows, count, {});
      }
    });
    for (const std::int64_t count : {1000, 4099}) {
      check<float>(group, windows, count, {.op = ReduceOp::mean});
      check<Bfloat16>(group, windows, count, {.scale = 0.3});
    }
  });
}

// Chunks of DirectOperation::kChunkBytes inside a piece.
TEST_P(Windowed, large_windows_give_the_same) {
  on_ranks(GetParam(), [](Group& group) {
    const SymmetricMemory windows =
        group.allocate_symmetric(group.size() * (1 << 20) + 100, "windows");
    check<float>(group, windows, group.size() * std::int64_t{300'000} + 5, {});
  });
}

// bf16 leaves, of which on_reduced sees fp32 sums.
TEST_P(Windowed, shows_unrounded_sums_of_several_parts) {
  on_ranks(GetParam(), [](Group& group) {
    const SymmetricMemory windows = group.allocate_symmetric(kWindows * kWindowBytes, "windows");
    std::vector<int> narrow(9000), wide(70);
    const auto block = [&](const std::vector<int>& part) {
      return block_of(static_cast<std::int64_t>(part.size()), group.size(), group.rank());
    };
    const std::vector<Range> blocks{block(narrow), block(wide)};
    std::vector<std::int64_t> next{blocks[0].begin, blocks[1].begin};
    const auto on_reduced = [&](std::size_t part, std::int64_t begin, std::int64_t count,
                                const void* values) {
      ASSERT_EQ(begin, next.at(part));
      next[part] += count;
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<float> leaves;
        for (int rank = 0; rank < group.size(); ++rank) {
          leaves.push_back(part == 0 ? to_float(test::value_of<Bfloat16>(rank, begin + i, 4))
                                     : test::value_of<float>(rank, begin + i, 5));
        }
        ASSERT_EQ(static_cast<const float*>(values)[i],
                  test::tree<float>(ReduceOp::sum, leaves, 0, leaves.size()));
      }
    };
    reduce_scatter_through(
        windows,
        {part_of<Bfloat16>(group, narrow, 4, {nullptr, blocks[0].size(), Dtype::f32}),
         part_of<float>(group, wide, 5, {nullptr, blocks[1].size(), Dtype::f32})},
        {.on_reduced = on_reduced})
        .wait();
    EXPECT_EQ(next, (std::vector<std::int64_t>{blocks[0].end, blocks[1].end}));
    EXPECT_EQ(group.traffic().received,
              (group.size() - 1) * (2 * blocks[0].size() + 4 * blocks[1].size()));
    EXPECT_EQ(group.traffic().collectives, 1);
  });
}

TEST_P(Windowed, operations_share_windows_and_run_in_the_order_of_issue) {
  on_ranks(GetParam(), [](Group& group) {
    const SymmetricMemory windows = group.allocate_symmetric(kWindows * kWindowBytes, "windows");
    for (int round = 0; round < 5; ++round) {
      std::vector<std::vector<int>> filled(3, std::vector<int>(3000));
      std::vector<std::vector<float>> outputs;
      std::vector<Work> works;
      const Range block = block_of(3000, group.size(), group.rank());
      outputs.resize(3, std::vector<float>(static_cast<std::size_t>(block.size())));
      for (std::size_t i = 0; i < 3; ++i) {
        works.push_back(reduce_scatter_through(
            windows, {part_of<float>(group, filled[i], i, Span(std::span(outputs[i])))}, {}));
      }
      test::check_all_reduce<float>(group, 100, {});  // waits for those before
      for (std::size_t i = 0; i < 3; ++i) {
        works[i].wait();
        for (std::int64_t at = block.begin; at < block.end; ++at) {
          ASSERT_EQ(outputs[i][static_cast<std::size_t>(at - block.begin)],
                    test::reduced_at<float>(at, group.size(), i, {}));
        }
      }
    }
  });
}

// A rank that is ahead lays no more than the windows hold.
TEST(WindowedSteps, wait_for_all_ranks) {
  std::latch looked(1);
  on_ranks(2, [&](Group& group) {
    const SymmetricMemory windows = group.allocate_symmetric(kWindows * kWindowBytes, "windows");
    std::vector<int> filled(10'000);
    std::vector<float> output(5000);
    if (group.rank() == 1) {
      looked.wait();
    }
    Work work = reduce_scatter_through(
        windows, {part_of<float>(group, filled, 1, Span(std::span(output)))}, {});
    if (group.rank() == 0) {
      EXPECT_EQ(filled, std::vector<int>(10'000, 0)) << "before the other has entered";
      looked.count_down();
    }
    work.wait();
    EXPECT_EQ(filled, std::vector<int>(10'000, 1));
  });
}

TEST(WindowedFill, is_dropped_after_the_last_element) {
  Group group = Group::alone();
  const SymmetricMemory windows = group.allocate_symmetric(kWindows * kWindowBytes, "windows");
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = owned;
  std::vector<float> output(4000);
  Work work = reduce_scatter_through(windows,
                                     {{4000, Dtype::f32,
                                       [owned = std::move(owned)](Range elements, void* to) {
                                         std::fill_n(static_cast<float*>(to), elements.size(), 2);
                                       },
                                       Span(std::span(output))}},
                                     {});
  work.wait();
  EXPECT_TRUE(watched.expired()) << "while the Work is still there";
  EXPECT_EQ(output, std::vector<float>(4000, 2));
}

TEST(WindowedFill, that_throws_ends_the_group) {
  Group group = Group::alone();
  const SymmetricMemory windows = group.allocate_symmetric(kWindows * kWindowBytes, "windows");
  std::vector<float> output(64);
  const WindowedPart part{64, Dtype::f32,
                          [](Range, void*) { throw std::runtime_error("no such gradient"); },
                          Span(std::span(output))};
  EXPECT_THROW(reduce_scatter_through(windows, {part}, {}), std::runtime_error);
  EXPECT_THROW(group.barrier(), GroupPoisoned);
}

TEST(WindowedRefuses, windows_without_room_and_groups_that_are_gone) {
  auto group = std::make_unique<Group>(Group::alone());
  std::vector<float> output(64);
  const WindowedPart part{64, Dtype::f32, [](Range, void*) {}, Span(std::span(output))};
  const SymmetricMemory small = group->allocate_symmetric(kWindows * kGranule * 4 - 64, "small");
  EXPECT_THROW(reduce_scatter_through(small, {part}, {}), UsageError);
  EXPECT_THROW(reduce_scatter_through(small, {}, {}), UsageError);
  group.reset();
  EXPECT_THROW(reduce_scatter_through(small, {part}, {}), GroupPoisoned);
}

}  // namespace
}  // namespace lockstep::comm
