// Checks that stay on in every build. A failed one is a bug in Lockstep, so it prints both
// operands and throws InvariantBroken.
#pragma once

#include "lockstep/error.h"

#include <sstream>
#include <string>

namespace lockstep::base {

template <class A, class B>
[[noreturn]] void invariant_broken(const char* file, int line, const char* text, const A& left,
                                   const B& right) {
  std::ostringstream out;
  out << file << ":" << line << ": invariant broken: " << text << " (" << +left << " against "
      << +right << "); this is a bug in Lockstep, please report it";
  throw InvariantBroken(out.str());
}

}  // namespace lockstep::base

#define LOCKSTEP_INVARIANT(left, op, right)                                            \
  do {                                                                                 \
    const auto lockstep_left = (left);                                                 \
    const auto lockstep_right = (right);                                               \
    if (!(lockstep_left op lockstep_right)) {                                          \
      ::lockstep::base::invariant_broken(__FILE__, __LINE__, #left " " #op " " #right, \
                                         lockstep_left, lockstep_right);               \
    }                                                                                  \
  } while (false)
