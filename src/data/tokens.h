// Text as tokens: encoded once, kept in a cache file, read through memory.
#pragma once

#include "checkpoint/mapped_file.h"
#include "data/text_source.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace lockstep::data {

// Token ids of the `bytes` tokenizer are the file's bytes.
inline constexpr std::int64_t kByteVocabulary = 256;

// The tokens of one text, memory-mapped; valid as long as this object.
class Tokens {
 public:
  // Opens the cache of `source` in `cache_folder`, and writes it first when there is none, it
  // belongs to another state of the source, or is damaged (size, header or checksum). Processes may
  // do this at the same time. Where the cache can't be written, the tokens come from the source
  // itself and note() says so: with byte tokens both hold the same bytes, only that an edit of the
  // source during the run would be seen. Throws UsageError when the source can't be read.
  static Tokens open(const TextSource& source, const std::string& cache_folder);

  std::span<const std::uint8_t> ids() const { return ids_; }
  // One line for the user when there is no cache.
  const std::optional<std::string>& note() const { return note_; }

 private:
  Tokens(checkpoint::MappedFile file, std::int64_t header_bytes);

  checkpoint::MappedFile file_;
  std::span<const std::uint8_t> ids_;
  std::optional<std::string> note_;
};

// The cache file of a source: one per path and tokenizer, so that a stale one is replaced.
std::string cache_path(const TextSource& source, const std::string& cache_folder);

}  // namespace lockstep::data
