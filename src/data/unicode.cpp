#include "data/unicode.h"

#include "base/invariant.h"
#include "data/utf8.h"

#include <algorithm>
#include <vector>

namespace lockstep::data {
namespace {

using Classes = std::vector<CharacterClass>;

// A byte per code point: texts touch few of its pages.
const Classes& classes() {
  static const Classes kClasses = [] {
    Classes all(0x110000, CharacterClass::other);
    for (const CharacterRange& range : character_ranges()) {
      std::fill(all.begin() + static_cast<std::ptrdiff_t>(range.first),
                all.begin() + static_cast<std::ptrdiff_t>(range.last) + 1, range.kind);
    }
    return all;
  }();
  return kClasses;
}

}  // namespace

CharacterClass class_of(char32_t code) {
  LOCKSTEP_INVARIANT(static_cast<std::uint32_t>(code), <=, 0x10ffffu);
  return classes()[code];
}

Classified classify_wide(std::string_view text, std::size_t at) {
  const auto character = first_character(text.substr(at));
  return character ? Classified{classes()[character->code], character->bytes}
                   : Classified{CharacterClass::other, 1};
}

Classified classify_before(std::string_view text, std::size_t at) {
  // A lead byte is never inside of a well-formed sequence, so the one found going back is where a
  // reader from the left would be too.
  for (std::size_t length = 1; length <= std::min<std::size_t>(4, at); ++length) {
    const auto byte = static_cast<unsigned char>(text[at - length]);
    if ((byte & 0xc0u) != 0x80u) {
      const Classified found = classify(text.substr(0, at), at - length);
      return found.bytes == length ? found : Classified{CharacterClass::other, 1};
    }
  }
  return {CharacterClass::other, 1};
}

}  // namespace lockstep::data
