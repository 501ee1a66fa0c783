#include "data/byte_level.h"

#include "data/utf8.h"

#include <array>

namespace lockstep::data {
namespace {

constexpr char32_t kFirstMoved = 0x100;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte <= 0xff && byte != 0xad);
}

struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<int, 0x180> bytes{};  // by character; −1: none
};

constexpr Alphabet kAlphabet = [] {
  Alphabet alphabet;
  alphabet.bytes.fill(-1);
  char32_t moved = kFirstMoved;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = stands_for_itself(byte) ? byte : moved++;
    alphabet.characters[byte] = character;
    alphabet.bytes[character] = static_cast<int>(byte);
  }
  return alphabet;
}();

}  // namespace

std::string byte_level_character(unsigned char byte) {
  const char32_t code = kAlphabet.characters[byte];
  if (code < 0x80) {
    return {static_cast<char>(code)};
  }
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

std::optional<std::string> byte_level_bytes(std::string_view characters) {
  std::string bytes;
  while (!characters.empty()) {
    const auto character = first_character(characters);
    if (!character || character->code >= kAlphabet.bytes.size() ||
        kAlphabet.bytes[character->code] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kAlphabet.bytes[character->code]);
    characters.remove_prefix(character->bytes);
  }
  return bytes;
}

}  // namespace lockstep::data
