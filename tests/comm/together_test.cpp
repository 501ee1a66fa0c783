#include "comm/together.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::comm {
namespace {

using test::on_ranks;
using test::text_of;
using test::threw;
using Texts = std::vector<std::string>;

TEST(GatherTexts, EveryRankGetsAllInOrder) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    on_ranks(ranks, [&](Group& group) {
      const auto own = static_cast<std::size_t>(group.rank());
      Texts expected;
      for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        expected.push_back(std::string(r * 100, static_cast<char>('a' + r)));  // rank 0's is empty
      }
      EXPECT_EQ(gather_texts(group, expected[own], "texts"), expected);
    });
  }
}

TEST(DoTogether, ReturnsWhatEveryRankReturned) {
  on_ranks(3, [](Group& group) {
    const Texts texts =
        do_together(group, "work", [&] { return "from " + std::to_string(group.rank()); });
    EXPECT_EQ(texts, (Texts{"from 0", "from 1", "from 2"}));
  });
}

TEST(DoTogether, AllThrowWhatTheFirstFailedRankThrew) {
  auto groups = Group::of_threads(4, {.deadline = std::chrono::seconds(60)});
  const auto outcomes = test::run_ranks(groups, [](Group& group) {
    do_together(group, "work", [&]() -> std::string {
      if (group.rank() == 1) {
        throw std::runtime_error("no space");
      }
      if (group.rank() == 2) {
        throw UsageError("bad name");
      }
      return "fine";
    });
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(text_of(outcome), "rank 1: no space");
    EXPECT_TRUE(threw<Error>(outcome));
    EXPECT_FALSE(threw<UsageError>(outcome));
  }
  on_ranks(groups, [](Group& group) {  // and the group is still good
    EXPECT_EQ(do_together(group, "again", [] { return std::string("x"); }), (Texts(4, "x")));
  });
}

TEST(DoTogether, WhatEveryRankSaysIsSaidOnce) {
  auto groups = Group::of_threads(2, {.deadline = std::chrono::seconds(60)});
  const auto outcomes = test::run_ranks(groups, [](Group& group) {
    do_together(group, "work", []() -> std::string { throw UsageError("bad name"); });
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(text_of(outcome), "bad name");
    EXPECT_TRUE(threw<UsageError>(outcome));
  }
}

}  // namespace
}  // namespace lockstep::comm
