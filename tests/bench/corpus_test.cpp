#include "bench/tokenize/corpus.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace lockstep::bench {
namespace {

constexpr const char* kSource =
    "To be, or not to be, that is the question:\n\n"
    "Whether 'tis nobler in the mind to suffer\n   The slings and arrows\n";

TEST(VariedText, HasNoLineTwiceAndTheSameBytesEachTime) {
  const std::string text = varied_text(kSource, 200'000);
  EXPECT_GE(text.size(), 200'000u);
  EXPECT_LT(text.size(), 200'100u);
  EXPECT_EQ(varied_text(kSource, 200'000), text);
  std::set<std::string> lines;
  std::istringstream stream(text);
  std::size_t count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    lines.insert(line);
  }
  EXPECT_EQ(lines.size(), count);
  EXPECT_GT(count, 3000u);
}

TEST(VariedText, MostWordsAreTheSourcesAndManyAreNew) {
  const std::string text = varied_text(kSource, 100'000);
  std::set<std::string> words;
  std::istringstream stream(text);
  std::size_t count = 0;
  std::size_t known = 0;
  for (std::string word; stream >> word; ++count) {
    words.insert(word);
    known += std::string(kSource).find(word) != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(known, count / 2);
  EXPECT_GT(words.size(), 400u);
}

TEST(VariedText, NeedsAWord) {
  EXPECT_EQ(test::error_of<Error>([] { varied_text("1\n\n- -\n", 10); }),
            "the text has no words to make a longer one of");
}

}  // namespace
}  // namespace lockstep::bench
