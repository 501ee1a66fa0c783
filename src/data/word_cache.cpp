#include "data/word_cache.h"

#include <xxhash.h>

namespace lockstep::data {
namespace {

constexpr std::size_t kSlots = 1 << 17;
constexpr std::size_t kLongestWord = 128;  // in bytes; longer ones hardly ever come twice

std::uint64_t hash_of(std::string_view word) { return XXH3_64bits(word.data(), word.size()); }

}  // namespace

WordCache::WordCache() : slots_(kSlots) {}

std::size_t WordCache::slot_of(std::string_view word, std::uint64_t hash) const {
  std::size_t at = hash & (kSlots - 1);
  while (true) {
    const Slot& slot = slots_[at];
    const bool same = slot.hash == hash && slot.text_size == word.size() &&
                      std::string_view(texts_).substr(slot.text_at, slot.text_size) == word;
    if (slot.text_size == 0 || same) {
      return at;
    }
    at = (at + 1) & (kSlots - 1);
  }
}

std::span<const TokenId> WordCache::find(std::string_view word) const {
  if (word.size() > kLongestWord) {
    return {};
  }
  const Slot& slot = slots_[slot_of(word, hash_of(word))];
  return slot.text_size == 0 ? std::span<const TokenId>()
                             : std::span(ids_).subspan(slot.ids_at, slot.ids_size);
}

void WordCache::add(std::string_view word, std::span<const TokenId> ids) {
  if (word.size() > kLongestWord) {
    return;
  }
  if (2 * used_ >= kSlots) {
    slots_.assign(kSlots, {});
    used_ = 0;
    texts_.clear();
    ids_.clear();
  }
  const std::uint64_t hash = hash_of(word);
  slots_[slot_of(word, hash)] = {
      hash, static_cast<std::uint32_t>(texts_.size()), static_cast<std::uint32_t>(ids_.size()),
      static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(ids.size())};
  texts_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++used_;
}

}  // namespace lockstep::data
