#include "data/byte_tokenizer.h"

#include "base/invariant.h"

#include <algorithm>

namespace lockstep::data {
namespace {

class ByteEncoder final : public Encoder {
 public:
  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    ids.reserve(ids.size() + text.size());
    for (const char byte : text) {
      ids.push_back(static_cast<unsigned char>(byte));
    }
  }
};

}  // namespace

std::uint64_t ByteTokenizer::identity() const { return 0x7365747962; }  // "bytes"

std::unique_ptr<Encoder> ByteTokenizer::encoder() const { return std::make_unique<ByteEncoder>(); }

std::vector<std::size_t> ByteTokenizer::parts(std::string_view text, std::size_t part_bytes) const {
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; begin < text.size(); begin = ends.back()) {
    ends.push_back(begin + std::min(part_bytes, text.size() - begin));
  }
  return ends;
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const TokenId id : ids) {
    LOCKSTEP_INVARIANT(id, <, 256u);
    text += static_cast<char>(id);
  }
  return text;
}

}  // namespace lockstep::data
