// The classes of characters that tokenizers tell apart.
#pragma once

#include "data/unicode_ranges.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace lockstep::data {

// Of a code point up to U+10FFFF.
CharacterClass class_of(char32_t code);

struct Classified {
  CharacterClass kind = CharacterClass::other;
  std::size_t bytes = 0;
};

// By byte below 0x80: of the 128 characters that most text is made of.
inline constexpr std::array<CharacterClass, 128> kAsciiClasses = [] {
  std::array<CharacterClass, 128> classes{};
  for (std::size_t code = 0; code < classes.size(); ++code) {
    const bool letter = (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
    const bool number = code >= '0' && code <= '9';
    const bool space = code == ' ' || (code >= '\t' && code <= '\r');
    classes[code] = letter   ? CharacterClass::letter
                    : number ? CharacterClass::number
                    : space  ? CharacterClass::space
                             : CharacterClass::other;
  }
  return classes;
}();

// classify() of what does not begin with an ASCII byte.
Classified classify_wide(std::string_view text, std::size_t at);

// The character at `at` < text.size(). A byte that is part of no well-formed UTF-8 is a character
// of its own, of class `other`.
inline Classified classify(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte < kAsciiClasses.size() ? Classified{kAsciiClasses[byte], 1} : classify_wide(text, at);
}

// The character that ends just before `at` > 0, as classify() finds it when it comes from the left.
Classified classify_before(std::string_view text, std::size_t at);

}  // namespace lockstep::data
