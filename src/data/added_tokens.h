// Tokens that stand in a text as they are written, before it is cut into words: "<|endoftext|>".
#pragma once

#include "data/token_span.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

struct AddedToken {
  std::string text;  // not empty
  TokenId id = 0;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    TokenId id = 0;
  };
  // Every occurrence from the left to the right; of those that begin at the same byte the longest.
  std::vector<Match> find(std::string_view text) const;

 private:
  // By first byte, longest first.
  std::array<std::vector<AddedToken>, 256> by_first_byte_;
  bool empty_ = true;
};

}  // namespace lockstep::data
