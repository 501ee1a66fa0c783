// GPT-2's way to write bytes as characters that print: 188 stand for themselves, the others for
// U+0100 and on, in their order. Source: openai/gpt-2, encoder.py, bytes_to_unicode.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::data {

// The character of a byte, in UTF-8.
std::string byte_level_character(unsigned char byte);

// The bytes that such characters stand for; none where one of them stands for no byte.
std::optional<std::string> byte_level_bytes(std::string_view characters);

}  // namespace lockstep::data
