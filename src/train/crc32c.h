// CRC-32C (Castagnoli; RFC 3720, appendix B.4), which TFRecord files carry.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::train {

std::uint32_t crc32c(std::string_view bytes);

// As TFRecord stores it: rotated right by 15 bits plus a constant, so that a checksum of bytes that
// hold checksums stays useful (tensorflow/core/lib/hash/crc32c.h).
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep::train
