// Unicode's letters, numbers and white space as ranges. The .cpp is written by
// scripts/unicode_ranges.py.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::data {

// \p{L}, \p{N} and \s of regular expressions; they do not overlap.
enum class CharacterClass : std::uint8_t { other, letter, number, space };

struct CharacterRange {
  char32_t first;
  char32_t last;
  CharacterClass kind;
};

// In ascending order; what is in none of them is `other`.
std::span<const CharacterRange> character_ranges();

}  // namespace lockstep::data
