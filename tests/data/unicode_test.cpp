// The peers hold the whole table to account in tokenizer_peers_test.cpp.
#include "data/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::data {
namespace {

using enum CharacterClass;

TEST(Unicode, RangesAscendAndDoNotTouch) {
  const auto ranges = character_ranges();
  ASSERT_GT(ranges.size(), 500u);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_LE(ranges[i].first, ranges[i].last);
    EXPECT_NE(ranges[i].kind, other);
    if (i > 0) {
      const bool apart = ranges[i].first > ranges[i - 1].last + 1;
      EXPECT_TRUE(apart || (ranges[i].first == ranges[i - 1].last + 1 &&
                            ranges[i].kind != ranges[i - 1].kind));
    }
  }
}

TEST(Unicode, KnowsTheClasses) {
  for (const char32_t code : {U'a', U'Z', U'ß', U'ª', U'漢', U'한', U'ʰ', U'\U00020000'}) {
    EXPECT_EQ(class_of(code), letter) << static_cast<std::uint32_t>(code);
  }
  for (const char32_t code : {U'0', U'٣', U'½', U'²', U'Ⅷ', U'〇'}) {
    EXPECT_EQ(class_of(code), number) << static_cast<std::uint32_t>(code);
  }
  for (const char32_t code : {U' ', U'\t', U'\v', U'\u0085', U'\u00a0', U'\u2028', U'\u3000'}) {
    EXPECT_EQ(class_of(code), space) << static_cast<std::uint32_t>(code);
  }
  for (const char32_t code :
       {U'!', U'\0', U'\x1c', U'\u0301', U'\u200b', U'\ufeff', U'😀', U'\ue000'}) {
    EXPECT_EQ(class_of(code), other) << static_cast<std::uint32_t>(code);
  }
}

TEST(Unicode, AsciiHasTheSameClassesInItsOwnTable) {
  for (char32_t code = 0; code < 0x80; ++code) {
    EXPECT_EQ(kAsciiClasses[code], class_of(code)) << static_cast<std::uint32_t>(code);
  }
}

TEST(Unicode, ABytePartOfNoCharacterIsOneOfItsOwn) {
  const std::string text = "\xe6\xbc\xa2\xe6\xbc\x41\xff";
  const auto found = [&](std::size_t at) {
    const Classified one = classify(text, at);
    return std::pair{one.kind, one.bytes};
  };
  EXPECT_EQ(found(0), (std::pair{letter, std::size_t{3}}));
  EXPECT_EQ(found(3), (std::pair{other, std::size_t{1}}));
  EXPECT_EQ(found(4), (std::pair{other, std::size_t{1}}));
  EXPECT_EQ(found(5), (std::pair{letter, std::size_t{1}}));
  EXPECT_EQ(found(6), (std::pair{other, std::size_t{1}}));
}

// All texts of up to six bytes from an alphabet that makes whole and broken characters.
TEST(Unicode, GoingBackFindsTheCharactersThatGoingForwardFound) {
  const std::string alphabet = "a \x80\xbf\xc2\xe3\xf0\xff";
  for (std::size_t length = 1; length <= 6; ++length) {
    std::string text(length, alphabet[0]);
    for (std::size_t number = 0; number < std::size_t{1} << 3 * length; ++number) {
      for (std::size_t i = 0; i < length; ++i) {
        text[i] = alphabet[number >> 3 * i & 7];
      }
      for (std::size_t at = 0; at < length;) {
        const Classified forward = classify(text, at);
        at += forward.bytes;
        const Classified back = classify_before(text, at);
        ASSERT_EQ(back.kind, forward.kind) << testing::PrintToString(text) << " before " << at;
        ASSERT_EQ(back.bytes, forward.bytes) << testing::PrintToString(text) << " before " << at;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::data
