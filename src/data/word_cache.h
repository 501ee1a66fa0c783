// The ids of words that have come before.
#pragma once

#include "data/token_span.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

// Holds up to a fixed number of words and starts afresh when it is full. Of one thread.
class WordCache {
 public:
  WordCache();

  // The ids of a word; empty when it is not remembered. Valid until add().
  std::span<const TokenId> find(std::string_view word) const;
  // Remembers a word that find() does not know; not a long one.
  void add(std::string_view word, std::span<const TokenId> ids);

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t text_at = 0;
    std::uint32_t ids_at = 0;
    std::uint16_t text_size = 0;  // 0: the slot is free
    std::uint16_t ids_size = 0;
  };

  // The slot that holds the word, or the free one where it would be.
  std::size_t slot_of(std::string_view word, std::uint64_t hash) const;

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  std::size_t used_ = 0;
  std::string texts_;
  std::vector<TokenId> ids_;
};

}  // namespace lockstep::data
