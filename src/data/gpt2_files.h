// GPT-2's tokenizer as OpenAI published it: encoder.json (token to id) and vocab.bpe (merges).
#pragma once

#include "data/bpe_tokenizer.h"

#include <string>

namespace lockstep::data {

// The folder with both files: $LOCKSTEP_GPT2, else where set-up puts them. Throws UsageError when
// one of them is not there.
std::string gpt2_folder();

// Text that reads "<|endoftext|>" is encoded like any other text. Throws UsageError naming file and
// line or key.
BpeDefinition read_gpt2(const std::string& folder);

}  // namespace lockstep::data
