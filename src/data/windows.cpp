#include "data/windows.h"

#include "base/invariant.h"
#include "lockstep/error.h"

namespace lockstep::data {

Split split(const TokenSpan& tokens) {
  const std::size_t validation = tokens.size() / 10;
  return {tokens.first(tokens.size() - validation), tokens.last(validation)};
}

Windows::Windows(const TokenSpan& tokens, std::int64_t sequence, const std::string& part)
    : tokens_(tokens), sequence_(sequence) {
  LOCKSTEP_INVARIANT(sequence, >=, 1);
  const auto held = static_cast<std::int64_t>(tokens.size());
  if (held < sequence + 1) {
    throw UsageError("--data: its " + part + " part has " + std::to_string(held) +
                     " tokens, one sequence needs --seq + 1 = " + std::to_string(sequence + 1) +
                     "; give a longer text or a smaller --seq" +
                     (part == "validation" ? ", or --eval-batches 0" : ""));
  }
  count_ = (held - 1) / sequence;
}

TokenSpan Windows::window(std::int64_t i) const {
  LOCKSTEP_INVARIANT(i, >=, 0);
  LOCKSTEP_INVARIANT(i, <, count_);
  return tokens_.subspan(static_cast<std::size_t>(i * sequence_),
                         static_cast<std::size_t>(sequence_ + 1));
}

}  // namespace lockstep::data
