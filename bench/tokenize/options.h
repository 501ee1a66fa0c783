// What `lockstep bench tokenize` was asked to measure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::bench {

struct TokenizeOptions {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  std::int64_t bytes = 100'000'000;  // of text
  int threads = 0;                   // of either side
  std::int64_t rounds = 3;
  std::string python;  // the interpreter that has tiktoken
};

// Throws UsageError.
TokenizeOptions parse_tokenize(std::span<const std::string> words);

}  // namespace lockstep::bench
