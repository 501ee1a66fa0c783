#include "data/word_splitter.h"

#include "base/invariant.h"
#include "data/unicode.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {
namespace {

constexpr std::size_t kNoLimit = std::string_view::npos;

bool is_line_break(char byte) { return byte == '\r' || byte == '\n'; }

// Where the characters of class `kind` end that begin at `at`; at most `most` of them.
std::size_t run_end(std::string_view text, std::size_t at, CharacterClass kind,
                    std::size_t most = kNoLimit) {
  for (std::size_t count = 0; at < text.size() && count < most; ++count) {
    const Classified next = classify(text, at);
    if (next.kind != kind) {
      break;
    }
    at += next.bytes;
  }
  return at;
}

// Bytes of an ending as in "it's", "we'll", behind an apostrophe at `at`; 0: none.
std::size_t contraction(std::string_view text, std::size_t at) {
  const std::string_view behind = text.substr(at + 1);
  if (behind.empty()) {
    return 0;
  }
  if (std::string_view("sdmt").find(behind[0]) != std::string_view::npos) {
    return 2;
  }
  const bool two = behind.starts_with("ll") || behind.starts_with("ve") || behind.starts_with("re");
  return two ? 3 : 0;
}

// The same in either case. U+017F, the long s, is one of the cases of s.
std::size_t contraction_of_any_case(std::string_view text, std::size_t at) {
  constexpr std::string_view kLongS = "\xc5\xbf";
  if (text.substr(at + 1).starts_with(kLongS)) {
    return 1 + kLongS.size();
  }
  std::string lower(text.substr(at, 3));
  std::ranges::transform(lower, lower.begin(), [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 0x20) : byte;
  });
  return contraction(lower, 0);
}

// A run of white space that begins at `at`.
struct Spaces {
  std::size_t end = 0;
  std::size_t last = 0;       // where its last character begins
  std::size_t break_end = 0;  // behind its last line break; 0: none
};

Spaces spaces_at(std::string_view text, std::size_t at) {
  Spaces spaces{at, at, 0};
  while (spaces.end < text.size()) {
    const Classified next = classify(text, spaces.end);
    if (next.kind != CharacterClass::space) {
      break;
    }
    spaces.last = spaces.end;
    spaces.end += next.bytes;
    spaces.break_end = is_line_break(text[spaces.last]) ? spaces.end : spaces.break_end;
  }
  return spaces;
}

// \s+(?!\S)|\s+: the last one of several is left for the word behind them.
std::size_t spaces_end(const Spaces& spaces, std::string_view text, std::size_t at) {
  return spaces.end < text.size() && spaces.last > at ? spaces.last : spaces.end;
}

std::size_t gpt2_end(std::string_view text, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t bytes = contraction(text, at)) {
      return at + bytes;
    }
  }
  const std::size_t begin = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const Classified first = classify(text, begin);
  return first.kind == CharacterClass::space ? spaces_end(spaces_at(text, at), text, at)
                                             : run_end(text, begin + first.bytes, first.kind);
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or `at` where that is not there.
std::size_t symbols_end(std::string_view text, std::size_t at) {
  const std::size_t begin = text[at] == ' ' ? at + 1 : at;
  std::size_t end = run_end(text, begin, CharacterClass::other);
  if (end == begin) {
    return at;
  }
  while (end < text.size() && is_line_break(text[end])) {
    ++end;
  }
  return end;
}

std::size_t llama3_end(std::string_view text, std::size_t at, std::size_t digits) {
  if (text[at] == '\'') {
    if (const std::size_t bytes = contraction_of_any_case(text, at)) {
      return at + bytes;
    }
  }
  const Classified first = classify(text, at);
  if (first.kind == CharacterClass::number) {
    return run_end(text, at, CharacterClass::number, digits);
  }
  const std::size_t second = at + first.bytes;
  if (first.kind == CharacterClass::letter || !is_line_break(text[at])) {
    const std::size_t end = run_end(text, second, CharacterClass::letter);
    if (first.kind == CharacterClass::letter || end > second) {
      return end;
    }
  }
  if (const std::size_t end = symbols_end(text, at); end > at) {
    return end;
  }
  const Spaces spaces = spaces_at(text, at);
  return spaces.break_end > 0 ? spaces.break_end : spaces_end(spaces, text, at);
}

std::size_t digits_end(std::string_view text, std::size_t at, std::size_t most) {
  const Classified first = classify(text, at);
  if (first.kind == CharacterClass::number) {
    return run_end(text, at, CharacterClass::number, most);
  }
  std::size_t end = at + first.bytes;
  while (end < text.size()) {
    const Classified next = classify(text, end);
    if (next.kind == CharacterClass::number) {
      break;
    }
    end += next.bytes;
  }
  return end;
}

bool cuts_at_spaces(WordRule rule) {
  return rule != WordRule::each_digit && rule != WordRule::digit_runs;
}

}  // namespace

std::size_t word_end(WordRule rule, std::string_view text, std::size_t at) {
  switch (rule) {
    case WordRule::gpt2:
      return gpt2_end(text, at);
    case WordRule::llama3:
      return llama3_end(text, at, 3);
    case WordRule::qwen2:
      return llama3_end(text, at, 1);
    case WordRule::each_digit:
      return digits_end(text, at, 1);
    case WordRule::digit_runs:
      return digits_end(text, at, kNoLimit);
  }
  return text.size();
}

WordSplitter::WordSplitter(WordRules rules) : rules_(std::move(rules)) {
  cuts_at_spaces_ = std::ranges::any_of(rules_.outer, cuts_at_spaces) ||
                    (rules_.inner && cuts_at_spaces(*rules_.inner));
}

bool WordSplitter::may_cut(std::string_view text, std::size_t at) const {
  LOCKSTEP_INVARIANT(at, >, 0u);
  LOCKSTEP_INVARIANT(at, <, text.size());
  if (!cuts_at_spaces_) {
    return false;
  }
  // A word that begins with a space ends the one before it, whatever that is made of.
  if (text[at] == ' ') {
    return classify_before(text, at).kind != CharacterClass::space;
  }
  // A single line break between two words is the end of one or a word of its own. Behind it no
  // space may be put in front, as there would be if the text began here.
  return !rules_.space_in_front && text[at - 1] == '\n' && at > 1 &&
         classify_before(text, at - 1).kind != CharacterClass::space &&
         classify(text, at).kind != CharacterClass::space;
}

}  // namespace lockstep::data
