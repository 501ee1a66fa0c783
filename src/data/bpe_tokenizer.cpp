#include "data/bpe_tokenizer.h"

#include "base/invariant.h"
#include "data/byte_level.h"
#include "data/word_cache.h"
#include "lockstep/error.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace lockstep::data {
namespace {

TokenId id_of(const BpeDefinition& definition, const std::string& token, const char* wanted_by) {
  const auto found = definition.vocabulary.find(token);
  if (found == definition.vocabulary.end()) {
    throw UsageError("--tokenizer " + definition.file + ": " + wanted_by + " '" + token +
                     "', which is not in the vocabulary; is the file complete?");
  }
  return found->second;
}

std::vector<std::string> bytes_by_id(const BpeDefinition& definition) {
  std::vector<std::string> bytes;
  const auto put = [&](TokenId id, std::string text) {
    bytes.resize(std::max<std::size_t>(bytes.size(), id + std::size_t{1}));
    bytes[id] = std::move(text);
  };
  for (const auto& [token, id] : definition.vocabulary) {
    // A token that no bytes make is one that was added: it stands for its own text.
    put(id, byte_level_bytes(token).value_or(token));
  }
  for (const auto* added : {&definition.added, &definition.added_later}) {
    for (const AddedToken& token : *added) {
      put(token.id, token.text);
    }
  }
  return bytes;
}

std::array<std::optional<TokenId>, 256> byte_ids_of(const BpeDefinition& definition) {
  std::array<std::optional<TokenId>, 256> ids{};
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const auto found =
        definition.vocabulary.find(byte_level_character(static_cast<unsigned char>(byte)));
    if (found != definition.vocabulary.end()) {
      ids[byte] = found->second;
    }
  }
  return ids;
}

std::vector<Merge> merges_of(const BpeDefinition& definition) {
  std::vector<Merge> merges;
  merges.reserve(definition.merges.size());
  for (const auto& [left, right] : definition.merges) {
    merges.push_back({id_of(definition, left, "has a merge of"),
                      id_of(definition, right, "has a merge of"),
                      id_of(definition, left + right, "has a merge into")});
  }
  return merges;
}

std::map<std::string, TokenId, std::less<>> whole_words_of(const BpeDefinition& definition) {
  std::map<std::string, TokenId, std::less<>> words;
  if (definition.whole_words_first) {
    for (const auto& [token, id] : definition.vocabulary) {
      if (auto bytes = byte_level_bytes(token)) {
        words.emplace(std::move(*bytes), id);
      }
    }
  }
  return words;
}

}  // namespace

class BpeTokenizer::WordEncoder final : public Encoder {
 public:
  explicit WordEncoder(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    std::size_t at = 0;
    for (const AddedTokens::Match& match : tokenizer_.added_in(text)) {
      encode_words(text.substr(at, match.begin - at), ids);
      ids.push_back(match.id);
      at = match.end;
    }
    encode_words(text.substr(at), ids);
  }

 private:
  void encode_words(std::string_view text, std::vector<TokenId>& ids) {
    tokenizer_.splitter_.split(text, [&](std::string_view word) {
      const std::span<const TokenId> known = cache_.find(word);
      if (!known.empty()) {
        ids.insert(ids.end(), known.begin(), known.end());
      } else {
        encode_new_word(word, ids);
      }
    });
  }

  void encode_new_word(std::string_view word, std::vector<TokenId>& ids) {
    if (word.size() >= std::numeric_limits<std::uint32_t>::max()) {
      throw UsageError("--data: has a word of " + std::to_string(word.size()) +
                       " bytes, this tokenizer takes less than 4 GiB; use --tokenizer bytes");
    }
    const std::size_t before = ids.size();
    const auto whole = tokenizer_.whole_words_.find(word);
    if (whole != tokenizer_.whole_words_.end()) {
      ids.push_back(whole->second);
    } else {
      for (const char byte : word) {
        ids.push_back(tokenizer_.id_of_byte(static_cast<unsigned char>(byte)));
      }
      ids.resize(before + tokenizer_.merges_.apply(std::span(ids).subspan(before)));
    }
    cache_.add(word, std::span(ids).subspan(before));
  }

  const BpeTokenizer& tokenizer_;
  WordCache cache_;
};

BpeTokenizer::BpeTokenizer(BpeDefinition definition)
    : spec_(definition.spec),
      identity_(definition.identity),
      bytes_(bytes_by_id(definition)),
      byte_ids_(byte_ids_of(definition)),
      merges_(merges_of(definition)),
      splitter_(definition.words),
      whole_words_(whole_words_of(definition)),
      added_(std::move(definition.added)),
      added_later_(std::move(definition.added_later)) {}

TokenId BpeTokenizer::id_of_byte(unsigned char byte) const {
  if (!byte_ids_[byte]) {
    throw UsageError("--data: has byte " + std::to_string(byte) + ", for which " + spec_ +
                     " has no token; take it out of the text, or use --tokenizer bytes");
  }
  return *byte_ids_[byte];
}

std::unique_ptr<Encoder> BpeTokenizer::encoder() const {
  return std::make_unique<WordEncoder>(*this);
}

std::vector<AddedTokens::Match> BpeTokenizer::added_in(std::string_view text) const {
  std::vector<AddedTokens::Match> all;
  std::size_t at = 0;
  const auto add_later_ones = [&](std::size_t end) {
    for (AddedTokens::Match match : added_later_.find(text.substr(at, end - at))) {
      all.push_back({match.begin + at, match.end + at, match.id});
    }
  };
  for (const AddedTokens::Match& match : added_.find(text)) {
    add_later_ones(match.begin);
    all.push_back(match);
    at = match.end;
  }
  add_later_ones(text.size());
  return all;
}

std::vector<std::size_t> BpeTokenizer::parts(std::string_view text, std::size_t part_bytes) const {
  LOCKSTEP_INVARIANT(part_bytes, >=, 1u);
  const std::vector<AddedTokens::Match> added = added_in(text);
  auto match = added.begin();  // the first that does not end before the cut
  std::vector<std::size_t> ends;
  std::size_t at = part_bytes;
  while (at < text.size()) {
    match = std::find_if(match, added.end(), [&](const auto& next) { return next.end > at; });
    const bool inside = match != added.end() && match->begin < at;
    if (!inside && splitter_.may_cut(text, at)) {
      ends.push_back(at);
      at += std::min(part_bytes, text.size() - at);
    } else {
      ++at;
    }
  }
  if (!text.empty()) {
    ends.push_back(text.size());
  }
  return ends;
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    LOCKSTEP_INVARIANT(std::size_t{id}, <, bytes_.size());
    text += bytes_[id];
  }
  return text;
}

}  // namespace lockstep::data
