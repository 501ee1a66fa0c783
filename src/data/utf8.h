// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::data {

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

// The character that `bytes` begins with; none where it is empty or where no well-formed sequence
// starts (overlong, a surrogate, beyond U+10FFFF, cut short).
std::optional<Utf8Character> first_character(std::string_view bytes);

}  // namespace lockstep::data
