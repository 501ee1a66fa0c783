// docs/collectives.md says what the schedules do.
#include "comm/schedules.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

namespace lockstep::comm {
namespace {

std::string page() {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/docs/collectives.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The line of the table of costs that starts with `name`.
std::string row_of(const std::string& name) {
  const std::string text = page();
  const std::size_t costs = text.find("## What they cost");
  const std::size_t begin = text.find("\n| " + name, costs) + 1;
  EXPECT_NE(begin, std::string::npos + 1) << name;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(CollectivesPage, has_the_rounds_and_traffic_of_four_ranks) {
  for (const Algorithm algorithm :
       {Algorithm::pairwise, Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
        Algorithm::coordinator, Algorithm::hierarchical}) {
    const auto rank = test::play(algorithm, {.ranks = 4, .ranks_per_host = 2})[0];
    const int blocks =
        rank.sent[test::kLeaf] + rank.sent[test::kPartial] + rank.sent[test::kResult];
    std::ostringstream end;
    end << "| " << rank.rounds << " | " << blocks / 4.0 << " X |";
    const std::string row = row_of(std::string(lockstep::name_of(algorithm)));
    ASSERT_GE(row.size(), end.str().size());
    EXPECT_EQ(row.substr(row.size() - end.str().size()), end.str()) << row;
  }
}

TEST(CollectivesPage, draws_the_rings_schedule) {
  std::string table;
  const std::array<std::string, 3> forms{"leaf", "partial", "result"};
  for (std::size_t round = 0; round < 6; ++round) {
    table += "| " + std::to_string(round + 1) + " |";
    Form form{};
    for (int r = 0; r < 4; ++r) {
      const Transfer sent = ring_schedule({.ranks = 4, .rank = r}).at(round).sends.at(0);
      EXPECT_EQ(sent.peer, (r + 1) % 4);
      table += " " + std::to_string(sent.blocks.at(0)) + " |";
      form = sent.form;
    }
    table += " " + forms.at(static_cast<std::size_t>(form)) + " |\n";
  }
  EXPECT_NE(page().find(table), std::string::npos) << table;
}

}  // namespace
}  // namespace lockstep::comm
