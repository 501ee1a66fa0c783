// The tokenizer whose tokens are a text's bytes.
#pragma once

#include "data/tokenizer.h"

namespace lockstep::data {

inline constexpr std::int64_t kByteVocabulary = 256;

class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return kByteVocabulary; }
  std::string spec() const override { return "bytes"; }
  std::uint64_t identity() const override;
  std::unique_ptr<Encoder> encoder() const override;
  std::vector<std::size_t> parts(std::string_view text, std::size_t part_bytes) const override;
  std::string decode(std::span<const TokenId> ids) const override;
};

}  // namespace lockstep::data
