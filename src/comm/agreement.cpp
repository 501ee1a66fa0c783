#include "comm/agreement.h"

#include "lockstep/error.h"

#include <algorithm>

namespace lockstep::comm {

bool Agreement::entered(std::uint64_t sequence) {
  if (verified_ >= sequence) {
    return true;
  }
  for (int r = 0; r < control_.ranks(); ++r) {
    if (control_.issued(r) < sequence) {
      return false;
    }
  }
  for (int r = 0; r < control_.ranks(); ++r) {
    compare(sequence, r);
  }
  verified_ = sequence;
  return true;
}

bool Agreement::stepped(std::uint64_t steps) {
  if (stepped_ >= steps) {
    return true;
  }
  std::uint64_t least = control_.stepped(0);
  for (int r = 1; r < control_.ranks() && least >= steps; ++r) {
    least = std::min(least, control_.stepped(r));
  }
  if (least < steps) {
    return false;
  }
  stepped_ = least;
  return true;
}

void Agreement::compare_with_present(std::uint64_t sequence) const {
  for (int r = 0; r < control_.ranks(); ++r) {
    if (control_.issued(r) >= sequence) {
      compare(sequence, r);
    }
  }
}

// With rank 0 where it is there, so that all ranks name the same two.
void Agreement::compare(std::uint64_t sequence, int peer) const {
  const int reference = control_.issued(0) >= sequence ? 0 : control_.rank();
  const Fingerprint& left = control_.posted(reference, sequence);
  const Fingerprint& right = control_.posted(peer, sequence);
  if (same(left, right)) {
    return;
  }
  throw Mismatch("group '" + group_name_ + "': ranks disagree about operation #" +
                 std::to_string(sequence) + ": rank " + std::to_string(reference) + ": " +
                 describe(left) + "; rank " + std::to_string(peer) + ": " + describe(right) +
                 "; every rank must call the same operations in the same order: look for a branch "
                 "that depends on the rank");
}

}  // namespace lockstep::comm
