#include "data/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::data {
namespace {

// The encoding as RFC 3629 defines it, without its exceptions.
std::string encoded(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    return {static_cast<char>(code)};
  }
  if (code < 0x800) {
    return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  }
  if (code < 0x10000) {
    return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  }
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, ReadsEveryCodePointAndNoSurrogate) {
  for (char32_t code = 0; code < 0x200000; ++code) {
    const std::string bytes = encoded(code);
    const auto found = first_character(bytes + "x");
    const bool legal = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    ASSERT_EQ(found.has_value(), legal) << static_cast<std::uint32_t>(code);
    if (found) {
      ASSERT_EQ(found->code, code);
      ASSERT_EQ(found->bytes, bytes.size());
      ASSERT_FALSE(first_character(bytes.substr(0, bytes.size() - 1))) << "cut short";
    }
  }
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (const char* bytes :
       {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xf5\x80\x80\x80", "\xff", "\xc3x", "\xe2\x82x", "\xe2x\x82"}) {
    EXPECT_FALSE(first_character(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace lockstep::data
