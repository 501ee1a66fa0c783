// Text as tokens: encoded once, kept in a cache file, read through memory.
#pragma once

#include "checkpoint/mapped_file.h"
#include "data/parallel_encode.h"
#include "data/text_source.h"
#include "data/token_span.h"
#include "data/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::data {

// The tokens of one text, memory-mapped; valid as long as this object.
class Tokens {
 public:
  // Opens the cache of `source` in `cache_folder`, and writes it first, as `encoding` says, when
  // there is none, it belongs to another state of the source, or is damaged (size, checksum or what
  // it says of itself). Processes may do this at the same time. Where the cache can't be written
  // the tokens stay in this process's memory, and note() says so. Throws UsageError when the source
  // can't be read or changes meanwhile.
  static Tokens open(const TextSource& source, const std::string& cache_folder,
                     const Tokenizer& tokenizer, const EncodeOptions& encoding = {});

  // Of width_bytes(vocabulary) each.
  TokenSpan ids() const;
  // One line for the user when there is no cache.
  const std::optional<std::string>& note() const { return note_; }

 private:
  using Storage = std::variant<checkpoint::MappedFile, std::vector<std::uint8_t>>;
  Tokens(Storage storage, std::size_t bytes, int width);

  Storage storage_;
  std::size_t bytes_;  // of the ids, which come first in the storage
  int width_;
  std::optional<std::string> note_;
};

// The cache file of a source: one per path and tokenizer, so that a stale one is replaced.
std::string cache_path(const TextSource& source, const std::string& cache_folder,
                       const Tokenizer& tokenizer);

}  // namespace lockstep::data
