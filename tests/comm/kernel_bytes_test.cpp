// Group::traffic() against the bytes that the kernels were called with.
#include "base/range.h"
#include "comm/control.h"
#include "comm/worlds.h"
#include "support/counted_bytes.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace lockstep {
namespace {

// Runs a collective and compares.
void check(Group& group, const std::function<Work()>& issue) {
  const Traffic before = group.traffic();
  const test::CountedBytes counted(group.rank(), group.size());
  issue().wait();
  EXPECT_EQ(group.traffic().received - before.received, counted.read());
  EXPECT_EQ(group.traffic().sent - before.sent, counted.written());
}

// Below and above what a slot and a stage hold, with blocks that are empty, short and uneven.
std::vector<std::int64_t> counts_of(Dtype dtype) {
  const std::int64_t slot = comm::Control::kSlotBytes / size_of(dtype);
  const std::int64_t stage = comm::Control::kStageBytes / size_of(dtype);
  return {0, 1, 63, 64, 65, 1000, slot, slot + 1, 3 * stage + 77};
}

class KernelBytes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, KernelBytes, ::testing::Values(1, 2, 3, 4, 7));

Span part_of(std::vector<std::byte>& memory, Dtype dtype, Range range) {
  return {memory.data() + range.begin * size_of(dtype), range.size(), dtype};
}

void check_plain(Group& group, Dtype dtype, std::int64_t count) {
  std::vector<std::byte> all(static_cast<std::size_t>(count * size_of(dtype)));
  std::vector<std::byte> block(all.size());
  const Range mine = block_of(count, group.size(), group.rank());
  const Span whole = part_of(all, dtype, {0, count});
  const Span apart = part_of(block, dtype, {0, mine.size()});
  check(group, [&] { return group.all_reduce(whole); });
  check(group, [&] { return group.reduce_scatter(whole, apart); });
  check(group, [&] { return group.reduce_scatter(whole, part_of(all, dtype, mine)); });
  check(group, [&] { return group.all_gather(apart, whole); });
  check(group, [&] { return group.all_gather(part_of(all, dtype, mine), whole); });
  check(group, [&] { return group.broadcast(whole, group.size() - 1); });
}

void check_symmetric(Group& group, Dtype dtype, std::int64_t count) {
  const SymmetricMemory memory = group.allocate_symmetric(count * size_of(dtype), "data");
  const SymmetricSpan data = memory.span(0, count, dtype);
  const Range mine = block_of(count, group.size(), group.rank());
  std::vector<std::byte> apart(static_cast<std::size_t>(mine.size() * size_of(Dtype::f64)));
  check(group, [&] { return group.all_reduce(data); });
  check(group, [&] { return group.all_reduce(data, {.op = ReduceOp::max}); });
  check(group,
        [&] { return group.reduce_scatter(data, data.subspan(mine.begin, mine.end).local()); });
  std::vector<ScatterPart> parts{{data, part_of(apart, dtype, {0, mine.size()})}};
  if (dtype == Dtype::bf16) {
    parts.push_back({data, part_of(apart, Dtype::f32, {0, mine.size()})});
    parts.push_back({data, {nullptr, mine.size(), Dtype::f32}});
  }
  check(group, [&] {
    return group.reduce_scatter(
        std::span<const ScatterPart>(parts),
        {.on_reduced = [](std::size_t, std::int64_t, std::int64_t, const void*) {}});
  });
  check(group, [&] { return group.all_gather(data); });
  check(group, [&] { return group.broadcast(data, 0); });
}

TEST_P(KernelBytes, AreWhatPlainMemorysTrafficSays) {
  test::on_ranks(GetParam(), [](Group& group) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i64}) {
      for (const std::int64_t count : counts_of(dtype)) {
        check_plain(group, dtype, count);
      }
    }
  });
}

TEST_P(KernelBytes, AreWhatSymmetricMemorysTrafficSays) {
  test::on_ranks(GetParam(), [](Group& group) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i64}) {
      for (const std::int64_t count : counts_of(dtype)) {
        check_symmetric(group, dtype, count);
      }
    }
  });
}

// The count itself sees what moves: it is no zero compared with a zero.
TEST(KernelByte, CountsAreOfOthersMemoryOnly) {
  test::on_ranks(2, [](Group& group) {
    const SymmetricSpan data = group.allocate_symmetric(4096 * 4, "data").span(0, 4096, Dtype::f32);
    const test::CountedBytes counted(group.rank(), group.size());
    group.all_reduce(data).wait();
    EXPECT_EQ(counted.read(), 2048 * 4);
    EXPECT_EQ(counted.written(), 2048 * 4);
    std::vector<float> plain(100);
    group.all_reduce(std::span(plain)).wait();  // through slots: everybody reads the others'
    EXPECT_EQ(counted.read(), 2048 * 4 + 100 * 4);
    EXPECT_EQ(counted.written(), 2048 * 4);
  });
}

}  // namespace
}  // namespace lockstep
