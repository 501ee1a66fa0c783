// Byte-level byte-pair encoding, of GPT-2 or of a Hugging Face tokenizer.json.
#pragma once

#include "data/added_tokens.h"
#include "data/merges.h"
#include "data/tokenizer.h"
#include "data/word_splitter.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::data {

// What such a tokenizer is made of. Tokens are written in GPT-2's characters: one per byte, those
// that do not print moved to U+0100 and on ("Ġ" is a space).
struct BpeDefinition {
  std::string spec;            // Tokenizer::spec()
  std::string file;            // that errors name
  std::uint64_t identity = 0;  // Tokenizer::identity()
  std::map<std::string, TokenId> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // in the order of their ranks
  WordRules words;
  bool whole_words_first = false;  // a word of the vocabulary is one token, whatever its merges
  // Found in the text one list after the other: the second in what the first leaves.
  std::vector<AddedToken> added;
  std::vector<AddedToken> added_later;
};

class BpeTokenizer final : public Tokenizer {
 public:
  // Throws UsageError naming the file and the token where a merge joins what is not in the
  // vocabulary. A text with a byte that has no token is refused when it is encoded.
  explicit BpeTokenizer(BpeDefinition definition);

  std::string spec() const override { return spec_; }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(bytes_.size()); }
  std::uint64_t identity() const override { return identity_; }
  std::unique_ptr<Encoder> encoder() const override;
  std::vector<std::size_t> parts(std::string_view text, std::size_t part_bytes) const override;
  std::string decode(std::span<const TokenId> ids) const override;

 private:
  class WordEncoder;

  // Throws UsageError when there is none.
  TokenId id_of_byte(unsigned char byte) const;
  // Added tokens of both lists, in the order of the text.
  std::vector<AddedTokens::Match> added_in(std::string_view text) const;

  std::string spec_;
  std::uint64_t identity_;
  std::vector<std::string> bytes_;  // by id
  // Some vocabularies lack bytes that their makers' texts never had.
  std::array<std::optional<TokenId>, 256> byte_ids_{};
  Merges merges_;
  WordSplitter splitter_;
  std::map<std::string, TokenId, std::less<>> whole_words_;  // by their bytes
  AddedTokens added_;
  AddedTokens added_later_;
};

}  // namespace lockstep::data
