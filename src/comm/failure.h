// What a group can fail with, in a form that travels between ranks: every rank throws the same
// kind with the same text.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

namespace lockstep::comm {

struct Failure {
  enum class Kind : std::uint32_t { timed_out, peer_lost, mismatch, poisoned, usage, system };
  Kind kind = Kind::poisoned;
  int rank = -1;  // whom it is about, for peer_lost
  std::string text;
};

// Throws the exception of error.h that `failure` stands for.
[[noreturn]] void raise(const Failure& failure);

// The Failure that an exception stands for, for other ranks; `where` names this rank where the
// exception's own text does not.
Failure failure_of(const std::exception& error, const std::string& where);

// The same as plain bytes, for shared memory and messages; a text that is too long is cut.
struct FailureMessage {
  std::uint32_t kind;
  std::int32_t rank;
  char text[8000];  // a line per rank takes its room

  void set(const Failure& failure);
  Failure get() const;
};

// The first failure of a group, in the group's shared memory (zeroed: no failure).
class FailureRecord {
 public:
  bool set() const { return state_.load(std::memory_order_acquire) != kEmpty; }
  // Keeps `failure` unless there is one already; says whether it was the first.
  bool record(const Failure& failure);
  // The recorded failure; set() must be true.
  Failure get() const;

 private:
  static constexpr std::uint32_t kEmpty = 0, kWriting = 1, kComplete = 2;
  std::atomic<std::uint32_t> state_;
  FailureMessage message_;
};

}  // namespace lockstep::comm
