// A text for timing tokenizers: natural words, and no line that a cache of lines would know.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::bench {

// At least `bytes` of text, up to one line more, made of the lines of `source` over and over. Every
// third word or so is replaced by another one of the source or by a new one that has some of its
// letters exchanged, so that no line occurs twice. The same text for the same arguments. Throws
// Error when the source has no line with a word.
std::string varied_text(std::string_view source, std::size_t bytes);

}  // namespace lockstep::bench
