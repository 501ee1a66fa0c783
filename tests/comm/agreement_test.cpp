#include "comm/agreement.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep {
namespace {

using test::on_ranks;
using test::run_ranks;
using test::text_of;
using test::threw;

std::vector<Group> threads(int ranks,
                           std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  return Group::of_threads(ranks, {.deadline = deadline});
}

float* floats(const SymmetricSpan& span) { return static_cast<float*>(span.data()); }

struct Disagreement {
  const char* name;
  std::function<void(Group&)> rank_0;
  std::function<void(Group&)> others;
  std::vector<std::string> texts;  // that the error must hold
};

std::vector<Disagreement> disagreements() {
  static std::vector<float> few(10);
  const auto reduce = [](std::int64_t count, const ReduceOptions& options) {
    return [count, options](Group& group) {
      std::vector<float> values(static_cast<std::size_t>(count));
      group.all_reduce(std::span(values), options).wait();
    };
  };
  return {
      {"kind",
       reduce(10, {.name = "bucket 3"}),
       [](Group& group) { group.barrier(); },
       {"rank 0: all_reduce 'bucket 3' f32[10] sum, plain, direct; rank 1: barrier",
        "every rank must call the same operations in the same order"}},
      {"count",
       reduce(10, {}),
       reduce(11, {}),
       {"rank 0: all_reduce f32[10]", "rank 1: all_reduce f32[11]"}},
      {"op", reduce(10, {}), reduce(10, {.op = ReduceOp::max}), {"f32[10] sum", "f32[10] max"}},
      {"name", reduce(10, {.name = "a"}), reduce(10, {.name = "b"}), {"'a'", "'b'"}},
      {"scale",
       reduce(10, {.scale = 0.5}),
       reduce(10, {.scale = 0.25}),
       {"scale 0.5", "scale 0.25"}},
      {"dtype",
       reduce(10, {}),
       [](Group& group) {
         std::vector<std::int32_t> values(10);
         group.all_reduce(std::span(values)).wait();
       },
       {"f32[10]", "i32[10]"}},
      {"root",
       [](Group& group) { group.broadcast(std::span(few), 0).wait(); },
       [](Group& group) {
         std::vector<float> values(10);
         group.broadcast(std::span(values), 1).wait();
       },
       {"root 0", "root 1"}},
      {"allocation",
       [](Group& group) { group.allocate_symmetric(64, "x"); },
       [](Group& group) { group.allocate_symmetric(128, "x"); },
       {"allocate_symmetric 'x' u8[64]", "allocate_symmetric 'x' u8[128]"}},
      {"split",
       [](Group& group) { group.split(0, 0); },
       [](Group& group) { group.barrier(); },
       {"rank 0: split; rank 1: barrier"}},
  };
}

TEST(Agreement, every_rank_gets_the_same_text_naming_both_sides) {
  for (const auto& disagreement : disagreements()) {
    auto groups = threads(3);
    const auto outcomes = run_ranks(groups, [&](Group& group) {
      group.rank() == 0 ? disagreement.rank_0(group) : disagreement.others(group);
    });
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(threw<Mismatch>(outcome)) << disagreement.name << ": " << text_of(outcome);
      EXPECT_EQ(text_of(outcome), text_of(outcomes[0])) << disagreement.name;
      std::string told = text_of(outcome);
      if (const auto other = told.find("rank 2: "); other != std::string::npos) {
        told.replace(other, 6, "rank 1");  // they do the same, and either may be the other side
      }
      for (const auto& text : disagreement.texts) {
        EXPECT_NE(told.find(text), std::string::npos)
            << disagreement.name << ": " << text_of(outcome);
      }
    }
  }
}

TEST(Agreement, symmetric_against_plain) {
  auto groups = threads(2);
  const auto outcomes = run_ranks(groups, [](Group& group) {
    const auto span = group.allocate_symmetric(400, "mixed").span(0, 100, Dtype::f32);
    group.rank() == 0 ? group.all_reduce(span).wait() : group.all_reduce(span.local()).wait();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<Mismatch>(outcome));
    EXPECT_NE(text_of(outcome).find("rank 0: all_reduce f32[100] sum, symmetric (segment 1, byte "
                                    "0), direct; rank 1: all_reduce f32[100] sum, plain, direct"),
              std::string::npos)
        << text_of(outcome);
  }
}

// Data must not have been touched when ranks disagree.
TEST(Agreement, leaves_the_data_alone) {
  auto groups = threads(2);
  run_ranks(groups, [](Group& group) {
    const auto memory = group.allocate_symmetric(800, "kept");
    const auto span = memory.span(group.rank() == 0 ? 0 : 192, 100, Dtype::f32);
    std::fill_n(floats(memory.span(0, 200, Dtype::f32)), 200, 7.0f);
    EXPECT_THROW(group.all_reduce(span).wait(), Mismatch);
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(floats(memory.span(0, 200, Dtype::f32))[i], 7.0f);
    }
  });
}

// The two that disagree learn it although the third keeps everybody waiting.
TEST(Agreement, shows_while_a_third_rank_is_missing) {
  auto groups = threads(3, std::chrono::seconds(60));
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> failed = 0;
  const auto outcomes = run_ranks(groups, [&](Group& group) {
    if (group.rank() == 2) {
      while (failed < 2) {
        std::this_thread::yield();
      }
      return;
    }
    EXPECT_THROW(group.barrier({.name = group.rank() == 0 ? "a" : "b"}), Mismatch);
    ++failed;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
}  // namespace lockstep
