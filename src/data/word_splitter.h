// How tokenizers cut a text into words, each of which is then encoded by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

// The regular expressions that published tokenizers use, as scanners.
enum class WordRule : std::uint8_t {
  // '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  gpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+
  llama3,
  // The same with \p{N} for \p{N}{1,3}.
  qwen2,
  // \p{N}, and what lies between.
  each_digit,
  // \p{N}+, and what lies between.
  digit_runs,
};

// Where the word ends that begins at `at` < text.size().
std::size_t word_end(WordRule rule, std::string_view text, std::size_t at);

// One rule after the other: each cuts the pieces that the one before left.
struct WordRules {
  std::vector<WordRule> outer;
  bool space_in_front = false;    // of each piece that the outer rules leave and that has none
  std::optional<WordRule> inner;  // cuts those pieces
};

class WordSplitter {
 public:
  explicit WordSplitter(WordRules rules);

  // Calls on_word(std::string_view) with the words in order. One after the other they are the
  // text, but for the spaces in front. A word is valid only during its call.
  template <class OnWord>
  void split(std::string_view text, OnWord&& on_word) const {
    if (!text.empty()) {
      split_outer(0, text, on_word);
    }
  }

  // Whether what lies before and after `at`, 0 < at < text.size(), split apart, give the words of
  // the whole; may be false where they do.
  bool may_cut(std::string_view text, std::size_t at) const;

 private:
  template <class OnPiece>
  static void split_by(WordRule rule, std::string_view text, OnPiece&& on_piece) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = word_end(rule, text, at);
      on_piece(text.substr(at, end - at));
      at = end;
    }
  }

  template <class OnWord>
  void split_outer(std::size_t level, std::string_view text, OnWord& on_word) const {
    if (level < rules_.outer.size()) {
      split_by(rules_.outer[level], text,
               [&](std::string_view piece) { split_outer(level + 1, piece, on_word); });
    } else if (rules_.space_in_front && !text.starts_with(' ')) {
      split_inner(" " + std::string(text), on_word);
    } else {
      split_inner(text, on_word);
    }
  }

  template <class OnWord>
  void split_inner(std::string_view text, OnWord& on_word) const {
    if (rules_.inner) {
      split_by(*rules_.inner, text, on_word);
    } else {
      on_word(text);
    }
  }

  WordRules rules_;
  bool cuts_at_spaces_;  // one of the rules does
};

}  // namespace lockstep::data
