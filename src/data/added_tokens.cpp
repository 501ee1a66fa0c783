#include "data/added_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace lockstep::data {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : empty_(tokens.empty()) {
  std::ranges::sort(tokens, std::greater<>(), [](const auto& token) { return token.text.size(); });
  for (AddedToken& token : tokens) {
    by_first_byte_[static_cast<unsigned char>(token.text[0])].push_back(std::move(token));
  }
}

std::vector<AddedTokens::Match> AddedTokens::find(std::string_view text) const {
  std::vector<Match> matches;
  if (empty_) {
    return matches;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto& candidates = by_first_byte_[static_cast<unsigned char>(text[at])];
    const auto found = std::ranges::find_if(candidates, [&](const AddedToken& token) {
      return text.compare(at, token.text.size(), token.text) == 0;
    });
    if (found == candidates.end()) {
      ++at;
      continue;
    }
    matches.push_back({at, at + found->text.size(), found->id});
    at = matches.back().end;
  }
  return matches;
}

}  // namespace lockstep::data
