// A Hugging Face tokenizer.json with byte-level byte-pair encoding.
// Source: https://github.com/huggingface/tokenizers, as `tokenizers` reads and runs it.
#pragma once

#include "data/bpe_tokenizer.h"

#include <string>

namespace lockstep::data {

// Tokens are those of `encode(text, add_special_tokens=False)`: added tokens stand for themselves,
// a post-processor adds nothing, truncation and padding do not apply, since a text to train on is
// one stream. Understands: no normalizer; pre-tokenizers ByteLevel, Digits, Split with the regular
// expressions of word_splitter.h, and sequences of them; model BPE without dropout, prefixes,
// suffixes and byte_fallback. Throws UsageError naming the field that asks for anything else.
BpeDefinition read_tokenizer_json(const std::string& path);

}  // namespace lockstep::data
