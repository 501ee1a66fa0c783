#include "comm/shared_memory.h"

#include "comm/worlds.h"
#include "lockstep/group.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using test::on_ranks;

TEST(SharedMemory, parts_are_whole_pages_apart) {
  const std::int64_t page = comm::page_bytes();
  EXPECT_EQ(comm::SharedMemory::stride(0), page);
  EXPECT_EQ(comm::SharedMemory::stride(1), page);
  EXPECT_EQ(comm::SharedMemory::stride(page), page);
  EXPECT_EQ(comm::SharedMemory::stride(page + 1), 2 * page);
}

TEST(SymmetricMemory, every_rank_reads_the_others_parts) {
  on_ranks(3, [](Group& group) {
    auto memory = group.allocate_symmetric(1000, "parts");
    EXPECT_EQ(memory.bytes(), 1000);
    const auto span = memory.span(64, 10, Dtype::i32);
    EXPECT_EQ(span.memory->own() + 64, span.data());
    static_cast<std::int32_t*>(span.data())[9] = 100 + group.rank();
    group.barrier();
    for (int r = 0; r < 3; ++r) {
      const auto* part = reinterpret_cast<const std::int32_t*>(span.memory->part(r) + 64);
      EXPECT_EQ(part[9], 100 + r);
      EXPECT_EQ(part[8], 0);
    }
    group.barrier();
  });
}

TEST(SymmetricMemory, lives_as_long_as_a_span_of_it) {
  SymmetricSpan kept;
  {
    Group group = Group::alone();
    auto memory = group.allocate_symmetric(64, "kept");
    kept = memory.span(0, 16, Dtype::f32);
  }
  static_cast<float*>(kept.data())[15] = 1.5f;
  EXPECT_EQ(static_cast<float*>(kept.data())[15], 1.5f);
}

TEST(SymmetricMemory, spans_outside_of_it_are_refused) {
  Group group = Group::alone();
  auto memory = group.allocate_symmetric(256, "small");
  EXPECT_NO_THROW(memory.span(0, 64, Dtype::f32));
  EXPECT_NO_THROW(memory.span(256, 0, Dtype::f32));
  EXPECT_THROW(memory.span(0, 65, Dtype::f32), UsageError);
  EXPECT_THROW(memory.span(64, 64, Dtype::f32), UsageError);
  EXPECT_THROW(memory.span(4, 1, Dtype::f32), UsageError);
  EXPECT_THROW(memory.span(-64, 1, Dtype::f32), UsageError);
  EXPECT_THROW(memory.span(0, -1, Dtype::f32), UsageError);
  EXPECT_THROW(memory.span(0, INT64_MAX, Dtype::f64), UsageError);
  EXPECT_THROW(SymmetricMemory().span(0, 1, Dtype::u8), UsageError);
}

TEST(SymmetricSpan, subspans_stay_inside) {
  Group group = Group::alone();
  const auto span = group.allocate_symmetric(256, "cut").span(64, 10, Dtype::f32);
  const auto part = span.subspan(3, 7);
  EXPECT_EQ(part.count, 4);
  EXPECT_EQ(part.data(), static_cast<float*>(span.data()) + 3);
  EXPECT_EQ(span.subspan(10, 10).count, 0);
  EXPECT_THROW(span.subspan(-1, 2), UsageError);
  EXPECT_THROW(span.subspan(4, 3), UsageError);
  EXPECT_THROW(span.subspan(0, 11), UsageError);
}

TEST(SymmetricMemory, more_than_the_host_has_is_refused_on_all_ranks_with_the_numbers) {
  auto groups = Group::of_threads(3, {.deadline = std::chrono::seconds(20)});
  const auto outcomes = test::run_ranks(
      groups, [](Group& group) { group.allocate_symmetric(std::int64_t{1} << 44, "too much"); });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(test::threw<SystemError>(outcome));
    EXPECT_NE(test::text_of(outcome).find("52776558133248 bytes"), std::string::npos)
        << test::text_of(outcome);
  }
  // Nothing was broken: the group goes on.
  test::on_ranks(
      groups, [](Group& group) { EXPECT_EQ(group.allocate_symmetric(64, "enough").bytes(), 64); });
}

TEST(SymmetricMemory, a_negative_size_is_a_usage_error) {
  Group group = Group::alone();
  EXPECT_THROW(group.allocate_symmetric(-1, "negative"), UsageError);
}

}  // namespace
}  // namespace lockstep
