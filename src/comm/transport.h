// Moves bytes between the ranks of a group.
//
// There is one line from each rank to each other one. Messages of a line arrive in the order they
// were sent in; lines know nothing of each other. Both ends agree beforehand on every message: how
// long it is, and the pieces it is cut into. Nothing here waits: send() and receive() note what is
// to be done, progress() does what can be done now. Who waits, for how long, and what ends a wait
// is the Communicator's business.
//
// Used by one thread at a time, the one that holds the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::comm {

// Part of a message, in this rank's memory.
struct Piece {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};
using Pieces = std::vector<Piece>;

class Transport {
 public:
  virtual ~Transport() = default;

  // The next message on the line to, or from, `peer` (not this rank); its pieces lie in the message
  // one behind the other, with the same sizes at both ends, at least one byte in all. Their memory
  // must stay, and that of a message to send unchanged, until it is counted below. Returns its
  // number on its line, from 1.
  virtual std::uint64_t send(int peer, Pieces pieces) = 0;
  virtual std::uint64_t receive(int peer, Pieces pieces) = 0;

  // Moves what can be moved without waiting. Throws a GroupError when a line is lost.
  virtual void progress() = 0;

  // Nothing is written into the memory of messages to receive any more; the last call.
  virtual void give_up() noexcept {}

  // How many messages of the line have left this rank's memory (not: have arrived), or are in it.
  virtual std::uint64_t sent(int peer) const = 0;
  virtual std::uint64_t received(int peer) const = 0;
};

}  // namespace lockstep::comm
