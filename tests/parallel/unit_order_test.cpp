#include "parallel/unit_order.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::parallel {
namespace {

using Pass = UnitOrder::Pass;
using Leaves = std::vector<std::string>;  // a letter per pass: small forward, capital backward

void note(UnitOrder& order, const Leaves& leaves) {
  for (const std::string& leaf : leaves) {
    for (const char letter : leaf) {
      const bool backward = letter < 'a';
      order.note(std::string(1, backward ? static_cast<char>(letter - 'A' + 'a') : letter),
                 backward ? Pass::backward : Pass::forward);
    }
    order.end_leaf();
  }
}

// What verify() throws on each rank, after a step of `before` on all.
std::vector<std::string> verified(const std::vector<Leaves>& ranks, const Leaves& before = {}) {
  auto groups = Group::of_threads(static_cast<int>(ranks.size()));
  std::vector<std::string> texts;
  for (const auto& outcome : test::run_ranks(groups, [&](Group& group) {
         UnitOrder order;
         note(order, before);
         order.end_step();
         note(order, ranks[static_cast<std::size_t>(group.rank())]);
         order.verify(group);
       })) {
    EXPECT_TRUE(outcome == nullptr || test::threw<Mismatch>(outcome));
    texts.push_back(test::text_of(outcome));
  }
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
  }
  return texts;
}

std::uint32_t digest_of(const Leaves& leaves) {
  UnitOrder order;
  note(order, leaves);
  return order.digest();
}

TEST(UnitOrder, DigestsDifferWithUnitPassPositionAndLeaf) {
  EXPECT_EQ(digest_of({"abBA"}), digest_of({"abBA"}));
  for (const Leaves& other :
       {Leaves{"abAB"}, {"abB"}, {"abb"}, {"ab", "BA"}, {"abBA", ""}, {"acCA"}, {""}, {}}) {
    EXPECT_NE(digest_of({"abBA"}), digest_of(other));
  }
}

TEST(UnitOrder, EqualOrdersPass) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const std::vector<Leaves> all(static_cast<std::size_t>(ranks), {"abBA", "baAB"});
    EXPECT_EQ(verified(all)[0], "");
  }
}

TEST(UnitOrder, NamesRanksUnitsAndPosition) {
  EXPECT_EQ(verified({{"abcCBA"}, {"abcCBA"}, {"acbBCA"}})[0],
            "ranks use units in different orders: in micro-batch 0 of the step, pass 1 is forward "
            "of 'b' on rank 0, but forward of 'c' on rank 2; take the same way through the module "
            "on every rank, or use Reshard::never (--reshard never) on one host");
  const std::string fewer = verified({{"abBA", "abBA"}, {"abBA", "abB"}})[0];
  EXPECT_NE(fewer.find("in micro-batch 1 of the step, pass 3 is backward of 'a' on rank 0, but no "
                       "further unit on rank 1"),
            std::string::npos)
      << fewer;
}

TEST(UnitOrder, TheRankThatKeptToTheOrderBeforeIsNamedFirst) {
  const std::string text = verified({{"acCA"}, {"abBA"}}, {"abBA"})[0];
  EXPECT_NE(text.find("pass 1 is forward of 'b' on rank 1, as in the step before, but forward of "
                      "'c' on rank 0"),
            std::string::npos)
      << text;
}

// As a rank has none that has run out of data.
TEST(UnitOrder, LeavesWithoutAnyUnitAreNotCompared) {
  EXPECT_EQ(verified({{"abBA", "abBA"}, {"abBA", ""}, {}})[0], "");
  EXPECT_NE(verified({{}, {"ab"}, {"ba"}})[0].find("on rank 1, but"), std::string::npos);
}

TEST(UnitOrder, AnAbandonedStepLeavesNothing) {
  UnitOrder order;
  note(order, {"ab"});
  order.forget();
  EXPECT_EQ(order.digest(), UnitOrder().digest());
}

}  // namespace
}  // namespace lockstep::parallel
