// A whole text into tokens, on several threads.
#pragma once

#include "data/tokenizer.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace lockstep::data {

struct EncodeOptions {
  int threads = 1;                    // that encode at the same time
  std::size_t part_bytes = 1u << 20;  // of text that one of them takes at a time, about
  // How many bytes of the text are done: 0 before the first, all of them at the end, and often
  // enough between for a progress bar.
  std::function<void(std::int64_t done_bytes)> on_progress = {};
};

// Calls `sink` with the tokens of `text` in order, some at a time; the same ones whatever the
// options. `sink` and on_progress run on the calling thread, and what they throw ends the encoding.
void encode_parallel(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options,
                     const std::function<void(std::span<const TokenId>)>& sink);

}  // namespace lockstep::data
