// A byte-pair tokenizer that a test can see through.
#pragma once

#include "data/bpe_tokenizer.h"
#include "data/byte_level.h"

#include <string>

namespace lockstep::data {

// Ids 0 … 255 are the bytes; 256 "he", 257 " t", 258 " the"; 300 and 301 are added: "<end>" and,
// later, " is". 259 … 299 are left out.
inline BpeDefinition small_definition() {
  BpeDefinition definition;
  definition.spec = "small.json";
  definition.file = "small.json";
  definition.identity = 1;
  for (int byte = 0; byte < 256; ++byte) {
    definition.vocabulary.emplace(byte_level_character(static_cast<unsigned char>(byte)), byte);
  }
  definition.vocabulary.insert({{"he", 256}, {"Ġt", 257}, {"Ġthe", 258}});
  definition.merges = {{"h", "e"}, {"Ġ", "t"}, {"Ġt", "he"}};
  definition.words.inner = WordRule::gpt2;
  definition.added = {{"<end>", 300}};
  definition.added_later = {{" is", 301}};
  return definition;
}

}  // namespace lockstep::data
