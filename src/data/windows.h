// Tokens as training samples: the split, and the windows of seq+1 tokens in it. Pure.
#pragma once

#include "data/token_span.h"

#include <cstdint>
#include <string>

namespace lockstep::data {

// The last tenth of the tokens (rounded down) is for validation, the rest for training.
struct Split {
  TokenSpan training;
  TokenSpan validation;
};
Split split(const TokenSpan& tokens);

// Windows of `sequence` + 1 tokens (inputs and, one later, targets) that start every `sequence`
// tokens, so that each token is predicted once; what does not fill a window at the end is left out.
class Windows {
 public:
  // `part` ("training") names the tokens in the error. Throws UsageError when they do not hold one
  // window.
  Windows(const TokenSpan& tokens, std::int64_t sequence, const std::string& part);

  std::int64_t count() const { return count_; }
  std::int64_t sequence() const { return sequence_; }
  // The seq+1 tokens of window i in [0, count).
  TokenSpan window(std::int64_t i) const;

 private:
  TokenSpan tokens_;
  std::int64_t sequence_;
  std::int64_t count_;
};

}  // namespace lockstep::data
