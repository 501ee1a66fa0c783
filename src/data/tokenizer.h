// Between text and token ids. Byte-level throughout: every sequence of bytes is a text, UTF-8 or
// not (but for bytes that a vocabulary lacks), and decoding gives back exactly what was encoded
// (unless the tokenizer's own file asks for a space in front).
#pragma once

#include "data/token_span.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

// Encodes with memory of its own (words it has seen): one per thread.
class Encoder {
 public:
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  // Appends the tokens of `text`. Throws UsageError for a text with a single word of 4 GiB, or with
  // a byte that the vocabulary lacks.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) = 0;
};

// Immutable; safe to use from several threads.
class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  // What open_tokenizer() takes to open it again, from any working folder.
  virtual std::string spec() const = 0;
  // One more than the largest id.
  virtual std::int64_t vocabulary() const = 0;
  // Equal for tokenizers that give every text the same tokens: of what they are made of, not of
  // where that lies.
  virtual std::uint64_t identity() const = 0;
  // Must not outlive the tokenizer.
  virtual std::unique_ptr<Encoder> encoder() const = 0;
  // The ends, in ascending order and the last one text.size(), of parts of about `part_bytes` ≥ 1
  // bytes or more whose tokens, part after part, are the tokens of `text`. None for an empty text.
  virtual std::vector<std::size_t> parts(std::string_view text, std::size_t part_bytes) const = 0;
  // The bytes that the ids stand for, one after the other; an id in [0, vocabulary()) that the
  // tokenizer leaves out stands for none. An id outside breaks an invariant.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  // All tokens of one text, on this thread.
  std::vector<TokenId> encode(std::string_view text) const;
};

// What `--tokenizer` means:
//   bytes   a text's bytes are its tokens, 256 of them
//   gpt2    GPT-2's byte-pair encoding, from the files encoder.json and vocab.bpe that set-up put
//           into the source folder, or of $LOCKSTEP_GPT2
//   a file  a Hugging Face tokenizer.json with byte-level byte-pair encoding
//   a folder that has such a file, as Hugging Face publishes models
// Throws UsageError, one line naming the file and, for what is not supported, its field.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& spec);

// Throws what open_tokenizer() would for a file that is missing, without reading it.
void check_tokenizer(const std::string& spec);

}  // namespace lockstep::data
