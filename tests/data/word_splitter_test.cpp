// What the regular expressions make of whole texts is asked of the peers, in
// tokenizer_peers_test.cpp.
#include "data/word_splitter.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

namespace lockstep::data {
namespace {

using Words = std::vector<std::string>;

Words words_of(const WordRules& rules, std::string_view text) {
  Words words;
  WordSplitter(rules).split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words gpt2(std::string_view text) {
  return words_of({.outer = {}, .space_in_front = false, .inner = WordRule::gpt2}, text);
}
Words llama3(std::string_view text) {
  return words_of({.outer = {WordRule::llama3}, .space_in_front = false, .inner = {}}, text);
}

TEST(WordSplitter, Gpt2) {
  EXPECT_EQ(gpt2(""), Words{});
  EXPECT_EQ(gpt2("Hello, it's 12 o'clock!"),
            (Words{"Hello", ",", " it", "'s", " 12", " o", "'", "clock", "!"}));
  EXPECT_EQ(gpt2("a  b\n\nc \td "), (Words{"a", " ", " b", "\n", "\n", "c", " ", "\t", "d", " "}));
  EXPECT_EQ(gpt2("a  "), (Words{"a", "  "}));
  EXPECT_EQ(gpt2("'S 's 'sx"), (Words{"'", "S", " '", "s", " '", "sx"}));
  EXPECT_EQ(gpt2("漢字\u3000é\xff!"), (Words{"漢字", "\u3000", "é", "\xff!"}));
}

TEST(WordSplitter, Llama3) {
  EXPECT_EQ(llama3("Hello, it'S 12345 (x)..\n\n y"),
            (Words{"Hello", ",", " it", "'S", " ", "123", "45", " (", "x", ")..\n\n", " y"}));
  EXPECT_EQ(llama3("a \n \n  b"), (Words{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(llama3("\tx\nx"), (Words{"\tx", "\n", "x"}));
  EXPECT_EQ(llama3("!x \xffx"), (Words{"!x", " \xff", "x"}));
}

TEST(WordSplitter, DigitsComeApartBeforeTheRest) {
  const WordRules each{
      .outer = {WordRule::each_digit}, .space_in_front = false, .inner = WordRule::gpt2};
  EXPECT_EQ(words_of(each, "a 12  b"), (Words{"a", " ", "1", "2", " ", " b"}));
  const WordRules runs{
      .outer = {WordRule::digit_runs}, .space_in_front = true, .inner = WordRule::gpt2};
  EXPECT_EQ(words_of(runs, ""), Words{});
  EXPECT_EQ(words_of(runs, "a 12 b"), (Words{" a", " ", " 12", " b"}));
}

TEST(WordSplitter, WithoutARuleAllIsOneWord) {
  EXPECT_EQ(words_of({}, "a b\nc"), Words{"a b\nc"});
  EXPECT_FALSE(WordSplitter({}).may_cut("a b", 1));
}

// Random texts over an alphabet on which the rules differ, cut wherever that is allowed.
TEST(WordSplitter, WhereItMayBeCutThePartsGiveTheSameWords) {
  constexpr std::array kAlphabet{"a", "S", " ",  " ",      "\n", "\n", "\r",   "1",       "'",
                                 "!", "s", "ll", "\u3000", "漢", "é",  "\xff", "\xe3\x80"};
  std::mt19937 random(1);
  std::vector<WordRules> all;
  for (const WordRule rule : {WordRule::gpt2, WordRule::llama3, WordRule::qwen2}) {
    all.push_back({.outer = {rule}, .space_in_front = false, .inner = {}});
    all.push_back({.outer = {WordRule::each_digit}, .space_in_front = true, .inner = rule});
    all.push_back({.outer = {rule, WordRule::digit_runs}, .space_in_front = true, .inner = {}});
  }
  int cuts = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      text += kAlphabet[random() % kAlphabet.size()];
    }
    const WordRules& rules = all[static_cast<std::size_t>(round) % all.size()];
    const Words whole = words_of(rules, text);
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (!WordSplitter(rules).may_cut(text, at)) {
        continue;
      }
      ++cuts;
      Words parts = words_of(rules, text.substr(0, at));
      const Words second = words_of(rules, text.substr(at));
      parts.insert(parts.end(), second.begin(), second.end());
      ASSERT_EQ(parts, whole) << testing::PrintToString(text) << " at " << at;
    }
  }
  EXPECT_GT(cuts, 2000);
}

}  // namespace
}  // namespace lockstep::data
