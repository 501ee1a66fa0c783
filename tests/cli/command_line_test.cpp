#include "cli/command_line.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

Command example(Rest rest) {
  return {
      .name = "lockstep example",
      .purpose = "Shows things.",
      .flags = {{"-n,--number", "N", "A number"}, {"--name", "TEXT", "A name"}, {"--fast", "", ""}},
      .not_built = {{"--later", "wait"}},
      .rest = rest};
}

std::string refusal(const Words& words, Rest rest = Rest::none) {
  try {
    parse(example(rest), words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CommandLine, values_come_in_every_spelling) {
  for (const Words& words : {Words{"--number", "3"}, Words{"--number=3"}, Words{"-n", "3"},
                             Words{"-n3"}, Words{"--number", "9", "-n", "3"}}) {
    EXPECT_EQ(parse(example(Rest::none), words).value_of("--number"), "3") << words.front();
  }
  EXPECT_EQ(parse(example(Rest::none), Words{"--number", "-5"}).value_of("--number"), "-5");
  EXPECT_EQ(parse(example(Rest::none), Words{"--name", "--fast"}).value_of("--name"), "--fast");
  EXPECT_EQ(parse(example(Rest::none), Words{"--name", ""}).value_of("--name"), "");
}

TEST(CommandLine, what_is_not_given_is_absent) {
  const CommandLine line = parse(example(Rest::none), Words{"--fast"});
  EXPECT_EQ(line.value_of("--fast"), "true");
  EXPECT_EQ(line.value_of("--number"), std::nullopt);
  EXPECT_EQ(line.given.size(), 1u);
}

TEST(CommandLine, a_program_begins_at_the_dashes_or_the_first_word) {
  const Words expected{"./program", "--number", "7", "--", "x"};
  for (const Words& words : {Words{"-n", "2", "--", "./program", "--number", "7", "--", "x"},
                             Words{"-n", "2", "./program", "--number", "7", "--", "x"}}) {
    const CommandLine line = parse(example(Rest::program), words);
    EXPECT_EQ(line.value_of("--number"), "2");
    EXPECT_EQ(line.rest, expected);
  }
}

TEST(CommandLine, names_stand_anywhere_among_the_options) {
  const CommandLine line = parse(example(Rest::names), Words{"a", "-n", "2", "b"});
  EXPECT_EQ(line.value_of("--number"), "2");
  EXPECT_EQ(line.rest, (Words{"a", "b"}));
  EXPECT_THROW(parse(example(Rest::names), Words{"a", "--nmber", "2"}), UsageError);
}

TEST(CommandLine, refusals_name_the_option_and_the_fix) {
  EXPECT_EQ(refusal({"--numbr", "3"}),
            "--numbr: unknown option (did you mean --number?); see lockstep example --help");
  EXPECT_EQ(refusal({"--numbr=3"}, Rest::program),
            "--numbr: unknown option (did you mean --number?); see lockstep example --help");
  EXPECT_EQ(refusal({"--later=1"}), "--later: not built yet; wait");
  EXPECT_EQ(refusal({"--number"}), "--number: needs a value; write --number N");
  EXPECT_EQ(refusal({"word"}),
            "unexpected argument 'word'; options begin with --, see lockstep example --help");
  EXPECT_EQ(refusal({"--name", "a", "--", "word"}),
            "unexpected argument 'word'; options begin with --, see lockstep example --help");
}

TEST(CommandLine, help_and_version_win) {
  EXPECT_NE(parse(example(Rest::none), Words{"--help"}).print.find("--number"), std::string::npos);
  EXPECT_EQ(parse(example(Rest::none), Words{"--version"}).print, version_text() + "\n");
}

TEST(CommandLine, suggestions_are_near_or_absent) {
  const Words known{"train", "launch", "generate"};
  EXPECT_EQ(suggestion("trian", known), " (did you mean train?)");
  EXPECT_EQ(suggestion("lunch", known), " (did you mean launch?)");
  EXPECT_EQ(suggestion("generator", known), " (did you mean generate?)");
  EXPECT_EQ(suggestion("xyzzy", known), "");
  EXPECT_EQ(suggestion("", known), "");
}

}  // namespace
}  // namespace lockstep::cli
