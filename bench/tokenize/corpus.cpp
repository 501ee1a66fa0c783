#include "bench/tokenize/corpus.h"

#include "lockstep/error.h"

#include <algorithm>
#include <random>
#include <unordered_set>
#include <vector>

namespace lockstep::bench {
namespace {

bool is_letter(char byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }

// The pieces of a line: runs of letters and of everything else.
std::vector<std::string_view> pieces_of(std::string_view line) {
  std::vector<std::string_view> pieces;
  while (!line.empty()) {
    const bool letters = is_letter(line[0]);
    const auto end =
        std::ranges::find_if(line, [&](char byte) { return is_letter(byte) != letters; });
    pieces.push_back(line.substr(0, static_cast<std::size_t>(end - line.begin())));
    line.remove_prefix(pieces.back().size());
  }
  return pieces;
}

std::vector<std::string_view> lines_with_words(std::string_view source) {
  std::vector<std::string_view> lines;
  while (!source.empty()) {
    const std::string_view line = source.substr(0, source.find('\n'));
    source.remove_prefix(std::min(source.size(), line.size() + 1));
    if (std::ranges::any_of(line, is_letter)) {
      lines.push_back(line);
    }
  }
  return lines;
}

class Variations {
 public:
  explicit Variations(std::string_view source) {
    for (const std::string_view piece : pieces_of(source)) {
      if (is_letter(piece[0])) {
        words_.push_back(piece);
      }
    }
  }

  std::string of(std::string_view line) {
    std::string varied;
    for (const std::string_view piece : pieces_of(line)) {
      varied += is_letter(piece[0]) && random_() % 3 == 0 ? another_word() : std::string(piece);
    }
    return varied + "\n";
  }

 private:
  // One of ten is a word that nobody wrote.
  std::string another_word() {
    std::string word(words_[random_() % words_.size()]);
    if (random_() % 10 == 0) {
      word[random_() % word.size()] = static_cast<char>('a' + random_() % 26);
      word[random_() % word.size()] = static_cast<char>('a' + random_() % 26);
    }
    return word;
  }

  std::vector<std::string_view> words_;
  std::mt19937_64 random_{1};
};

}  // namespace

std::string varied_text(std::string_view source, std::size_t bytes) {
  const std::vector<std::string_view> lines = lines_with_words(source);
  if (lines.empty()) {
    throw Error("the text has no words to make a longer one of");
  }
  Variations variations(source);
  std::unordered_set<std::string> seen;
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) {
    const std::string line = variations.of(lines[i % lines.size()]);
    if (seen.insert(line).second) {
      text += line;
    }
  }
  return text;
}

}  // namespace lockstep::bench
