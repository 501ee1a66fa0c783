#include "comm/arguments.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

// A group of one and buffers for calls that must be refused before anything is posted.
class Arguments : public ::testing::Test {
 protected:
  template <class Call>
  void refused(const std::string& naming, Call call) {
    const std::int64_t before = group_.traffic().collectives;
    try {
      call();
      ADD_FAILURE() << "accepted: expected an error naming '" << naming << "'";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(naming), std::string::npos) << error.what();
    }
    EXPECT_EQ(group_.traffic().collectives, before) << "something was posted";
  }

  Group group_ = Group::alone();
  std::vector<float> floats_ = std::vector<float>(8);
  std::vector<std::int32_t> integers_ = std::vector<std::int32_t>(8);
  SymmetricMemory memory_ = group_.allocate_symmetric(4096, "memory");
};

TEST_F(Arguments, reductions_that_have_no_meaning) {
  const Span floats{std::span(floats_)};
  const Span integers{std::span(integers_)};
  refused("mean of i32", [&] { group_.all_reduce(integers, {.op = ReduceOp::mean}); });
  refused("scale needs floating-point elements, got i32",
          [&] { group_.all_reduce(integers, {.scale = 0.5}); });
  refused("scale goes only with sum, got mean",
          [&] { group_.all_reduce(floats, {.op = ReduceOp::mean, .scale = 0.5}); });
  refused("got i32 to bf16", [&] { group_.all_reduce(integers, {.round_to = Dtype::bf16}); });
  refused("got f32 to f64", [&] { group_.all_reduce(floats, {.round_to = Dtype::f64}); });
  refused("mean of u8", [&] {
    group_.reduce_scatter(memory_.span(0, 4, Dtype::u8),
                          Span(memory_.span(0, 4, Dtype::u8).data(), 4, Dtype::u8),
                          {.op = ReduceOp::mean});
  });
}

TEST_F(Arguments, callbacks_on_plain_memory) {
  ReduceOptions options;
  options.on_reduced = [](std::size_t, std::int64_t, std::int64_t, const void*) {};
  const Span floats{std::span(floats_)};
  refused("on_reduced", [&] { group_.all_reduce(floats, options); });
  refused("on_reduced", [&] { group_.reduce_scatter(floats, floats, options); });
}

TEST_F(Arguments, spans_that_are_none) {
  refused("null pointer", [&] { group_.all_reduce(Span(nullptr, 3, Dtype::f32)); });
  refused("negative count", [&] { group_.broadcast(Span(floats_.data(), -1, Dtype::f32), 0); });
  refused("not aligned", [&] {
    group_.all_reduce(Span(reinterpret_cast<std::byte*>(floats_.data()) + 1, 3, Dtype::f32));
  });
  refused("no memory", [&] { group_.all_reduce(SymmetricSpan()); });
  SymmetricSpan outside = memory_.span(0, 4, Dtype::f32);
  outside.count = 1025;
  refused("does not fit", [&] { group_.all_gather(outside); });
}

TEST_F(Arguments, blocks_of_another_size_type_or_place) {
  const Span whole{std::span(floats_)};
  refused("rank 0's block of f32[8] on 1 ranks has 8 elements, got 7",
          [&] { group_.reduce_scatter(whole, Span(floats_.data(), 7, Dtype::f32)); });
  refused("got i32[8]", [&] { group_.all_gather(Span(std::span(integers_)), whole); });
  std::vector<float> longer(9);
  refused("overlaps", [&] {
    group_.reduce_scatter(Span(longer.data(), 8, Dtype::f32),
                          Span(longer.data() + 1, 8, Dtype::f32));
  });
}

TEST_F(Arguments, roots_that_are_not_in_the_group) {
  const Span floats{std::span(floats_)};
  refused("root from 0 to 0, got 1", [&] { group_.broadcast(floats, 1); });
  refused("got -1", [&] { group_.broadcast(memory_.span(0, 4, Dtype::f32), -1); });
}

TEST_F(Arguments, memory_of_another_group) {
  Group other = Group::alone({.name = "other"});
  refused("belongs to another group than 'world'", [&] {
    group_.all_reduce(other.allocate_symmetric(64, "theirs").span(0, 4, Dtype::f32));
  });
}

TEST_F(Arguments, parts) {
  const SymmetricSpan span = memory_.span(0, 4, Dtype::f32);
  refused("1 to 4 parts, got 0", [&] { group_.all_reduce(std::span<const ReducePart>()); });
  const std::vector<ReducePart> five(5, ReducePart{span, {}});
  refused("1 to 4 parts, got 5", [&] { group_.all_reduce(five); });
  const std::vector<ReducePart> one(1, ReducePart{span, {}});
  refused("on each part", [&] { group_.all_reduce(one, {.round_to = Dtype::bf16}); });
  const std::vector<ReducePart> mixed{{span, {}}, {memory_.span(64, 4, Dtype::i32), {}}};
  refused("mean of i32", [&] { group_.all_reduce(mixed, {.op = ReduceOp::mean}); });
}

TEST_F(Arguments, scattered_parts) {
  const SymmetricSpan f32 = memory_.span(0, 8, Dtype::f32);
  const SymmetricSpan bf16 = memory_.span(64, 8, Dtype::bf16);
  const auto scatter = [&](const ScatterPart& part, const ReduceOptions& options = {}) {
    group_.reduce_scatter(std::span(&part, 1), options).wait();
  };
  const Span floats{std::span(floats_)};
  refused("1 to 4 parts, got 0", [&] { group_.reduce_scatter(std::span<const ScatterPart>()); });
  refused("on each part", [&] { scatter({f32, floats, {}}, {.round_to = Dtype::bf16}); });
  refused("bf16[8] may be of its dtype, or f32", [&] {
    scatter({bf16, Span(floats_.data(), 4, Dtype::f64), {}});
  });
  refused("f32[8] may be of its dtype", [&] {
    scatter({f32, Span(floats_.data(), 8, Dtype::bf16), {}});
  });
  refused("has 8 elements, got 7", [&] { scatter({bf16, {floats_.data(), 7, Dtype::f32}, {}}); });
  refused("overlaps its input", [&] { scatter({bf16, {bf16.data(), 8, Dtype::f32}, {}}); });
  refused("its result would be lost", [&] { scatter({f32, {nullptr, 8, Dtype::f32}, {}}); });
  scatter({bf16, floats, {}});
}

TEST(ArgumentsOfGroups, sizes_and_deadlines) {
  EXPECT_THROW(Group::of_threads(0), UsageError);
  EXPECT_THROW(Group::of_threads(2, {.deadline = std::chrono::milliseconds(0)}), UsageError);
  EXPECT_THROW(Group::alone({.deadline = std::chrono::milliseconds(-5)}), UsageError);
}

TEST(ArgumentsOfGroups, automatic_means_direct_where_there_is_a_direct_one) {
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast}) {
    EXPECT_EQ(chosen_algorithm(kind, Algorithm::automatic, true), Algorithm::direct);
  }
  EXPECT_EQ(chosen_algorithm(Kind::reduce, Algorithm::automatic, true), Algorithm::pairwise);
  EXPECT_EQ(chosen_algorithm(Kind::all_to_all, Algorithm::automatic, true), Algorithm::pairwise);
  EXPECT_EQ(chosen_algorithm(Kind::gather, Algorithm::automatic, true), Algorithm::coordinator);
  EXPECT_EQ(chosen_algorithm(Kind::scatter, Algorithm::automatic, true), Algorithm::coordinator);
  EXPECT_EQ(chosen_algorithm(Kind::all_reduce, Algorithm::ring, true), Algorithm::ring);
  EXPECT_THROW(chosen_algorithm(Kind::all_reduce, Algorithm::native, true), UsageError);
}

TEST(ArgumentsOfGroups, hosts_are_named_for_every_rank) {
  EXPECT_THROW(Group::of_threads(3, {.hosts = {0, 1}}), UsageError);
  EXPECT_EQ(Group::of_threads(3, {.hosts = {0, 1, 1}}).size(), 3u);
}

}  // namespace
}  // namespace lockstep::comm
