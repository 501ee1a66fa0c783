// Bytes in memory, and the hash by which checkpoints know them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

using ByteSpan = std::span<const std::uint8_t>;

inline ByteSpan bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// XXH3 with 128 bits (https://xxhash.com) over the pieces laid end to end, as 32 lower-case
// hexadecimal digits. Finds damage, not malice.
std::string hash_of(std::span<const ByteSpan> pieces);
std::string hash_of(ByteSpan bytes);

}  // namespace lockstep::checkpoint
