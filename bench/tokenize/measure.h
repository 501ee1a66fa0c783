// Our tokenizer against PyPI's tiktoken on the same text.
#pragma once

#include "bench/common/statistics.h"
#include "bench/tokenize/options.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::bench {

struct TokenizeRound {
  double lockstep_s = 0;
  double tiktoken_s = 0;
};

struct TokenizeAnswer {
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;
  std::vector<TokenizeRound> rounds;
  Spread ratio;  // our time over tiktoken's, round by round
};

// Throws Error when the tokens differ, naming the first that does, or when tiktoken fails.
TokenizeAnswer measure_tokenizing(const TokenizeOptions& options,
                                  const std::function<void(const TokenizeRound&)>& on_round);

}  // namespace lockstep::bench
