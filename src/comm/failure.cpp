#include "comm/failure.h"

#include "lockstep/error.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace lockstep::comm {

void raise(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::timed_out:
      throw TimedOut(failure.text);
    case Failure::Kind::peer_lost:
      throw PeerLost(failure.rank, failure.text);
    case Failure::Kind::mismatch:
      throw Mismatch(failure.text);
    case Failure::Kind::usage:
      throw UsageError(failure.text);
    case Failure::Kind::system:
      throw SystemError(failure.text);
    case Failure::Kind::poisoned:
      break;
  }
  throw GroupPoisoned(failure.text);
}

Failure failure_of(const std::exception& error, const std::string& where) {
  const std::string text = error.what();
  if (dynamic_cast<const TimedOut*>(&error) != nullptr) {
    return {Failure::Kind::timed_out, -1, text};
  }
  if (const auto* lost = dynamic_cast<const PeerLost*>(&error)) {
    return {Failure::Kind::peer_lost, lost->rank(), text};
  }
  if (dynamic_cast<const Mismatch*>(&error) != nullptr) {
    return {Failure::Kind::mismatch, -1, text};
  }
  if (dynamic_cast<const UsageError*>(&error) != nullptr) {
    return {Failure::Kind::usage, -1, text};
  }
  if (dynamic_cast<const SystemError*>(&error) != nullptr) {
    return {Failure::Kind::system, -1, text};
  }
  if (dynamic_cast<const GroupPoisoned*>(&error) != nullptr) {
    return {Failure::Kind::poisoned, -1, text};
  }
  return {Failure::Kind::poisoned, -1, where + ": " + text};
}

void FailureMessage::set(const Failure& failure) {
  kind = static_cast<std::uint32_t>(failure.kind);
  rank = failure.rank;
  const std::size_t length = std::min(failure.text.size(), sizeof text - 1);
  std::memcpy(text, failure.text.data(), length);
  text[length] = '\0';
}

Failure FailureMessage::get() const { return {static_cast<Failure::Kind>(kind), rank, text}; }

bool FailureRecord::record(const Failure& failure) {
  std::uint32_t expected = kEmpty;
  if (!state_.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel)) {
    return false;
  }
  message_.set(failure);
  state_.store(kComplete, std::memory_order_release);
  return true;
}

Failure FailureRecord::get() const {
  // The writer needs microseconds; a second means that it was killed between the two stores.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (state_.load(std::memory_order_acquire) != kComplete) {
    if (std::chrono::steady_clock::now() > give_up) {
      return {Failure::Kind::poisoned, -1, "a rank died while it recorded why the group failed"};
    }
    std::this_thread::yield();
  }
  return message_.get();
}

}  // namespace lockstep::comm
