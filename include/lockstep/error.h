// What Lockstep throws. Two kinds of failure:
//   Error            the world or the caller: a dead rank, ranks that disagree, a bad argument.
//                    Its text is one line: what, where, expected, got, the change that helps;
//                    PeerLost and TimedOut add an indented line per rank: where it is.
//   InvariantBroken  a bug in Lockstep (base/invariant.h); both operands are in the text.
// The library never prints and never exits; it throws, and the programs decide.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller asked for what cannot be done as asked; nothing has been changed.
class UsageError : public Error {
 public:
  using Error::Error;
};

// The operating system refused: memory, files, sockets. The text holds the call and errno's words.
class SystemError : public Error {
 public:
  using Error::Error;
};

// Something that a collective of a group can end with. Every rank of the group gets the same kind,
// and the group can't be used afterwards.
class GroupError : public Error {
 public:
  using Error::Error;
};

// A rank died or left while others still needed it. `rank()` is its rank in the group.
class PeerLost : public GroupError {
 public:
  PeerLost(int rank, const std::string& text) : GroupError(text), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

// Ranks called different operations, or the same one with different arguments.
class Mismatch : public GroupError {
 public:
  using GroupError::GroupError;
};

// A peer gave no sign of life for the group's deadline.
class TimedOut : public GroupError {
 public:
  using GroupError::GroupError;
};

// The group failed earlier (or a Work was dropped unwaited); the text repeats the first cause.
class GroupPoisoned : public GroupError {
 public:
  using GroupError::GroupError;
};

class InvariantBroken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace lockstep
