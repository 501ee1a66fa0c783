// Byte-pair merges: which neighbours join, and in which order.
// Source: Sennrich, Haddow & Birch 2016, "Neural Machine Translation of Rare Words with Subword
// Units", over bytes as in GPT-2.
#pragma once

#include "data/token_span.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lockstep::data {

struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId merged = 0;
};

class Merges {
 public:
  // In the order of their ranks. Where a pair comes twice the later one counts.
  explicit Merges(std::span<const Merge> merges);

  // Joins the pair of lowest rank, the leftmost of several, until none is left that has a rank.
  // Works in place and returns how many ids, from the first on, remain. O(n log n). Needs fewer
  // than 2³² ids.
  std::size_t apply(std::span<TokenId> ids) const;

 private:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
  struct Found {
    std::uint32_t rank = kNoRank;
    TokenId merged = 0;
  };
  struct Slot {
    TokenId left = 0;
    TokenId right = 0;
    Found found;
  };
  class Chain;

  std::size_t slot_of(TokenId left, TokenId right) const;
  Found find(TokenId left, TokenId right) const { return slots_[slot_of(left, right)].found; }
  std::size_t apply_short(std::span<TokenId> ids) const;
  std::size_t apply_long(std::span<TokenId> ids) const;

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  int shift_ = 0;            // from a hash of 64 bits to a slot
};

}  // namespace lockstep::data
