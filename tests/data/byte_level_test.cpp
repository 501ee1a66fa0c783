#include "data/byte_level.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::data {
namespace {

TEST(ByteLevel, EveryByteHasItsCharacterAndComesBack) {
  std::set<std::string> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = byte_level_character(static_cast<unsigned char>(byte));
    characters.insert(character);
    EXPECT_EQ(byte_level_bytes(character), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(characters.size(), 256u);
}

TEST(ByteLevel, KeepsWhatPrintsAndMovesTheRest) {
  EXPECT_EQ(byte_level_character('A'), "A");
  EXPECT_EQ(byte_level_character(' '), "Ġ");
  EXPECT_EQ(byte_level_character('\n'), "Ċ");
  EXPECT_EQ(byte_level_character(0), "Ā");
  EXPECT_EQ(byte_level_character(0xad), "Ń");  // the soft hyphen, the last one moved
  EXPECT_EQ(byte_level_character(0xff), "ÿ");
  EXPECT_EQ(byte_level_bytes("Ġwas"), " was");
  EXPECT_EQ(byte_level_bytes(""), "");
}

TEST(ByteLevel, OtherCharactersStandForNoByte) {
  for (const char* text : {" ", "a b", "▁a", "ń", "漢", "\xff", "\xad"}) {
    EXPECT_EQ(byte_level_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lockstep::data
