#include "data/byte_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::data {
namespace {

TEST(ByteTokenizer, TokensAreBytes) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocabulary(), 256);
  EXPECT_EQ(tokenizer.encode("a\xff"), (std::vector<TokenId>{'a', 0xff}));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(all)), all);
}

TEST(ByteTokenizer, PartsMayEndAnywhere) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.parts("", 3), (std::vector<std::size_t>{}));
  EXPECT_EQ(tokenizer.parts("abc", 3), (std::vector<std::size_t>{3}));
  EXPECT_EQ(tokenizer.parts("abcdefg", 3), (std::vector<std::size_t>{3, 6, 7}));
}

}  // namespace
}  // namespace lockstep::data
