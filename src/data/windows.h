// Tokens as training samples: the split, and the windows of seq+1 tokens in it. Pure.
#pragma once

#include "base/range.h"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::data {

// The last tenth of the tokens (rounded down) is for validation, the rest for training.
struct Split {
  std::span<const std::uint8_t> training;
  std::span<const std::uint8_t> validation;
};
Split split(std::span<const std::uint8_t> tokens);

// Windows of `sequence` + 1 tokens (inputs and, one later, targets) that start every `sequence`
// tokens, so that each token is predicted once; what does not fill a window at the end is left out.
class Windows {
 public:
  // `part` ("training") names the tokens in the error. Throws UsageError when they do not hold one
  // window.
  Windows(std::span<const std::uint8_t> tokens, std::int64_t sequence, const std::string& part);

  std::int64_t count() const { return count_; }
  std::int64_t sequence() const { return sequence_; }
  // The seq+1 tokens of window i in [0, count).
  std::span<const std::uint8_t> window(std::int64_t i) const;

 private:
  std::span<const std::uint8_t> tokens_;
  std::int64_t sequence_;
  std::int64_t count_;
};

}  // namespace lockstep::data
