#include "checkpoint/bytes.h"

#include "lockstep/error.h"

#include <xxhash.h>

#include <memory>

namespace lockstep::checkpoint {

std::string hash_of(std::span<const ByteSpan> pieces) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (state == nullptr) {
    throw SystemError("hashing: no memory for its state");
  }
  XXH3_128bits_reset(state.get());
  for (const ByteSpan piece : pieces) {
    XXH3_128bits_update(state.get(), piece.data(), piece.size());
  }
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(state.get()));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest.digest) {
    text.append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
  }
  return text;
}

std::string hash_of(ByteSpan bytes) { return hash_of(std::span(&bytes, 1)); }

}  // namespace lockstep::checkpoint
