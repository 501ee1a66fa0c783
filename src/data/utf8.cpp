#include "data/utf8.h"

namespace lockstep::data {
namespace {

struct Sequence {
  std::size_t bytes = 0;  // 0: no lead byte
  char32_t least = 0;     // below it the sequence is overlong
};

Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) {
    return {1, 0};
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return {2, 0x80};
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    return {3, 0x800};
  }
  return lead >= 0xf0 && lead <= 0xf4 ? Sequence{4, 0x10000} : Sequence{};
}

}  // namespace

std::optional<Utf8Character> first_character(std::string_view bytes) {
  if (bytes.empty()) {
    return std::nullopt;
  }
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const Sequence sequence = sequence_of(lead);
  if (sequence.bytes == 0 || bytes.size() < sequence.bytes) {
    return std::nullopt;
  }
  char32_t code = sequence.bytes == 1 ? lead : lead & (0x7fu >> sequence.bytes);
  for (std::size_t i = 1; i < sequence.bytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if ((byte & 0xc0u) != 0x80u) {
      return std::nullopt;
    }
    code = code << 6 | (byte & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < sequence.least || code > 0x10ffff || surrogate) {
    return std::nullopt;
  }
  return Utf8Character{code, sequence.bytes};
}

}  // namespace lockstep::data
